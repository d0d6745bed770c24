"""Runs that are not as usual: from forks, cancelled, behind a proxy, rehearsed, without a
summary.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.actions.fake_runner import FakeRunner
from sealpipe_rehearsal.running_service import RunningService
from support import faults
from support.faulty import Faulty
from support.github_log import pairs
from support.parts import ROOT, missing
from support.terminal import PATIENCE, addresses, opened
from support.wires import Intercepting

SEALPIPE = str(Path(sys.executable).with_name("sealpipe"))
Start = Callable[..., FakeRunner]


@pytest.mark.parametrize("action", ["share", "request", "collect", "expire", "unseal", "batch"])
def test_a_run_from_a_fork_says_that_it_gets_empty_secrets(
    job: Start, actions: Path, service: RunningService, action: str
) -> None:
    runner = job()
    given = {"share": {"fields": "P=env:P"}, "request": {"ask": "P"}, "expire": {"shares": "x"}}
    given |= {
        "collect": {"requests": "x", "to": "file:x"},
        "batch": {"file": "x.toml"},
        "unseal": {"sealed-link": "x"},
    }
    empty = {"SEALPIPE_API_KEY": "", "P": ""}
    step = runner.uses(actions / action, given[action], empty)
    assert (step.code, step.outputs["outcome"], step.outputs["error-code"]) == (2, "failed", "2")
    assert "runs from forks and of Dependabot get empty secrets" in step.annotations("error")[0]
    step = runner.uses(actions / action, {**given[action], "on-missing-key": "skip"}, empty)
    assert (step.code, step.outputs["outcome"], step.outputs["error-code"]) == (0, "skipped", "")
    assert "empty secrets" in step.annotations("notice")[0]
    assert service.seen() == []


@pytest.mark.parametrize("on_missing_key", ["fail", "skip", "ignore"])
def test_without_a_credential_nothing_is_installed(
    job: Start, actions: Path, on_missing_key: str
) -> None:
    step = job().uses(actions / "share", {"fields": "text:x", "on-missing-key": on_missing_key})
    assert set(dict(step.pairs)) == {"folder", "outcome", "error-code"}, "nothing of the set-up"
    assert step.outputs["executable"] == ""
    assert step.code == (0 if on_missing_key == "skip" else 2)


@pytest.mark.parametrize("linked", ["", "actions", "actions/share", "actions/share/action.yml"])
def test_a_workflow_may_have_a_link_to_the_checkout_the_folder_or_the_file(
    job: Start, actions: Path, key: str, linked: str, tmp_path: Path
) -> None:
    place = tmp_path / "elsewhere"
    link = place / linked
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(actions.parent / linked)
    step = job().uses(place / "actions/share", {"fields": "text:x"}, {"SEALPIPE_API_KEY": key})
    assert (step.code, step.outputs["outcome"]) == (0, "created")


@pytest.mark.parametrize(
    "variable", ["SEALPIPE_API_KEY_FILE", "SEALPIPE_CONFIG", "XDG_CONFIG_HOME"]
)
def test_a_credential_may_be_in_a_file(
    job: Start, actions: Path, key: str, variable: str, tmp_path: Path
) -> None:
    config = tmp_path / "sealpipe/config.toml"
    (config.parent).mkdir()
    config.write_text(f'api_key_file = "{tmp_path}/key"\n')
    config.chmod(0o600)
    (tmp_path / "key").write_text(key)
    (tmp_path / "key").chmod(0o600)
    places = {
        "SEALPIPE_API_KEY_FILE": tmp_path / "key",
        "SEALPIPE_CONFIG": config,
        "XDG_CONFIG_HOME": tmp_path,
    }
    step = job().uses(actions / "share", {"fields": "text:x"}, {variable: str(places[variable])})
    assert (step.code, step.outputs["outcome"]) == (0, "created")


def test_a_step_without_a_credential_gets_an_error(job: Start, actions: Path) -> None:
    step = job().uses(actions / "share", {"fields": "text:x"})
    assert step.code == 2
    assert "set env: SEALPIPE_API_KEY" in step.annotations("error")[0]


@pytest.mark.parametrize(
    ("action", "given"),
    [
        (
            "share",
            {
                "fields": "P=env:P\nU=text:u",
                "send": "slack:#ops",
                "recipient": "r",
                "also-to": "vault:s/x#P",
            },
        ),
        ("request", {"ask": "P", "send": "slack:#ops", "param": "a=text:b"}),
    ],
)
def test_a_rehearsal_needs_no_account_sends_nothing_and_makes_up_what_is_empty(
    job: Start, actions: Path, service: RunningService, action: str, given: dict[str, str]
) -> None:
    runner = job()
    env = {"SEALPIPE_API_KEY": "", "P": ""}
    step = runner.uses(
        actions / action, {**given, "rehearse": "true", "base-url": "https://real.example/v1"}, env
    )
    assert (step.code, step.outputs["outcome"]) == (0, "created"), runner.text
    assert dict(step.pairs)["extras"] == ("vault,rehearsal" if action == "share" else "rehearsal")
    assert any(
        "send" in each and "ignored in a rehearsal" in each for each in step.annotations("notice")
    )
    assert any(
        "made-up values for empty variables: P" in each for each in step.annotations("notice")
    ) == (action == "share")
    assert service.seen() == []
    assert "rehearsal" in runner.summary


@pytest.mark.parametrize("patience", [7.5, 0.3], ids=["SIGINT", "SIGINT, then SIGTERM"])
def test_a_cancelled_job_ends_in_time_with_what_is_known_and_can_be_finished(
    job: Start, actions: Path, service: RunningService, key: str, patience: float
) -> None:
    with Faulty(service.address, then=faults.holds) as door:
        runner = job()
        env = {
            "SEALPIPE_API_KEY": key,
            "SEALPIPE_BASE_URL": door.base_url,
            "SEALPIPE_STATE_DIR": str(runner.temp / "s"),
        }
        runner.cancel(
            lambda: any(each.method == "POST" for each in door.received()), patience=patience
        )
        step = runner.uses(
            actions / "share", {"fields": "text:x", "deadline": "60s", "executable": SEALPIPE}, env
        )
        assert step.code in (130, 143)
        assert (step.outputs["outcome"], step.outputs["link"]) == ("interrupted", "")
        assert "sealpipe: interrupted" in runner.text
        assert "sealpipe resume" in runner.text
        assert len(list((runner.temp / "s" / "outbox").glob("*.sealed"))) == 1
        assert not list(runner.temp.glob("sealpipe-*")), "no file with a link is left"


def test_a_proxy_and_a_ca_of_ones_own(
    job: Start, actions: Path, service: RunningService, key: str, tmp_path: Path
) -> None:
    with Intercepting(tmp_path, {"secrets.example": service.address.port}) as proxy:
        runner = job(HTTPS_PROXY=proxy.url(), SEALPIPE_BASE_URL="", SEALPIPE_LINK_BASE_URL="")
        given = {
            "fields": "text:x",
            "base-url": "https://secrets.example/v1",
            "link-base-url": service.link_base_url,
            "ca-file": str(proxy.ca_file),
        }
        step = runner.uses(actions / "share", given, {"SEALPIPE_API_KEY": key})
        assert step.code == 0, runner.text
        assert set(proxy.asked) == {"secrets.example"}
        assert key.rpartition(".")[2].encode() not in b"".join(
            bytes(each) for each in proxy.read.values()
        )
        assert list(opened(service, step.outputs["link"]).values()) == ["x"]
        wrong = runner.uses(actions / "share", {**given, "ca-file": ""}, {"SEALPIPE_API_KEY": key})
        assert wrong.code == 10, "an unknown authority is not trusted"


def test_the_summary_can_be_left_out(job: Start, actions: Path, key: str) -> None:
    runner = job()
    step = runner.uses(
        actions / "share", {"fields": "text:x", "summary": "false"}, {"SEALPIPE_API_KEY": key}
    )
    assert step.code == 0
    assert runner.summary == ""


def test_a_step_whose_stderr_is_a_file_writes_no_mask_and_no_link(
    job: Start, actions: Path, key: str, tmp_path: Path
) -> None:
    runner = job()
    file = tmp_path / "log"
    output = tmp_path / "output"
    environ = {
        **runner.environ,
        "SEALPIPE_API_KEY": key,
        "SEALPIPE_ACTION_FIELDS": "text:x",
        "SEALPIPE_ACTION_SEALPIPE": str(Path(sys.executable).with_name("sealpipe")),
        "GITHUB_OUTPUT": str(output),
    }
    with file.open("wb") as log:
        done = subprocess.run(
            [sys.executable, "-I", actions / "_run", "share"], env=environ, stderr=log, check=False
        )
    assert done.returncode == 0, file.read_text()
    assert "add-mask" not in file.read_text()
    assert "#" not in file.read_text()
    outputs = dict(pairs(output.read_text()))
    assert outputs["short-code"]
    assert "link" not in outputs


def test_the_real_set_up_takes_an_executable_that_is_there(job: Start, key: str) -> None:
    if not (ROOT / "actions" / "_setup" / "setup.sh").exists():
        missing("actions/_setup/setup.sh does not exist yet")
    runner = job()
    given = {"fields": "text:x", "executable": SEALPIPE}
    step = runner.uses(ROOT / "actions" / "share", given, {"SEALPIPE_API_KEY": key})
    assert step.code == 0, runner.text
    assert Path(step.outputs["executable"]).samefile(given["executable"])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device is full here")
@pytest.mark.parametrize(
    ("full", "code", "told"),
    [
        (
            "GITHUB_OUTPUT",
            11,
            "::error title=sealpipe::GITHUB_OUTPUT cannot be written: No space left on device",
        ),
        ("GITHUB_STEP_SUMMARY", 0, "::warning title=sealpipe::no summary: No space left on device"),
    ],
)
def test_a_full_runner_disk_is_reported_in_one_line(
    service: RunningService, key: str, tmp_path: Path, full: str, code: int, told: str
) -> None:
    given = {"SHARES": "notthere", "MISSING_OK": "true", "SUMMARY": "true", "SEALPIPE": SEALPIPE}
    environ = {f"SEALPIPE_ACTION_{name}": value for name, value in given.items()}
    environ |= {
        **addresses(service),
        "SEALPIPE_API_KEY": key,
        "HOME": str(tmp_path),
        full: "/dev/full",
    }
    words = [sys.executable, "-I", str(ROOT / "actions/_run"), "expire"]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == code, done
    assert told in done.stderr
    assert "Traceback" not in done.stderr
