"""`actions/unseal`: a sealed link of another job, masked before it stands anywhere."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.actions.conftest import SEALPIPE
from e2e.actions.fake_runner import FakeRunner
from sealpipe_rehearsal.running_service import RunningService
from support.parts import ROOT
from support.terminal import opened

Start = Callable[..., FakeRunner]
CANARY = "hunter22-canary"


@pytest.fixture
def shared(job: Start, actions: Path, key: str) -> dict[str, str]:
    """What the next job gets of a job that shared."""
    runner = job("sharing")
    given = {"fields": "Password=env:P", "seal-link": "true"}
    step = runner.uses(actions / "share", given, {"SEALPIPE_API_KEY": key, "P": CANARY})
    return runner.job_outputs(step.outputs)


def test_another_job_gets_the_link_masked_in_every_form(
    job: Start, actions: Path, service: RunningService, key: str, shared: dict[str, str]
) -> None:
    runner = job("other", hidden={"KEY": key}, debug=True)
    given = {
        "sealed-link": shared["sealed-link"],
        "expect": shared["short-code"],
        "link-file": "link",
    }
    step = runner.uses(
        actions / "unseal", {**given, "variable": "HANDOVER_LINK"}, {"SEALPIPE_API_KEY": key}
    )
    assert (step.code, step.outputs["outcome"], step.outputs["error-code"]) == (0, "opened", ""), (
        runner.text
    )
    link = step.outputs["link"]
    assert (
        link == runner.exported["HANDOVER_LINK"] == (runner.workspace / "link").read_text().strip()
    )
    assert (runner.workspace / "link").stat().st_mode & 0o777 == 0o600
    fragment = link.partition("#")[2]
    masked = [each.data for each in step.commands if each.name == "add-mask"]
    assert {link, fragment, fragment[1:]} <= set(masked)
    for canary in (key, link, fragment, fragment[1:]):
        assert canary not in runner.text + runner.summary
    assert step.outputs["short-code"] == shared["short-code"]
    assert opened(service, link) == {"Password": CANARY}
    assert set(runner.job_outputs(step.outputs)) == {"short-code", "outcome", "executable"}
    assert not list(runner.temp.glob("sealpipe-*")), "the file that the link came by is gone"


def test_no_process_shows_the_sealed_link_in_its_arguments(
    job: Start, actions: Path, key: str, shared: dict[str, str], tmp_path: Path
) -> None:
    seen, recorder = tmp_path / "seen", tmp_path / "sealpipe"
    recorder.write_text(f'#!/bin/sh\necho "$*" >> "{seen}"\nexec "{SEALPIPE}" "$@"\n')
    recorder.chmod(0o755)
    given = {"sealed-link": shared["sealed-link"], "executable": str(recorder)}
    step = job("other").uses(actions / "unseal", given, {"SEALPIPE_API_KEY": key})
    assert step.outputs["outcome"] == "opened"
    assert "unseal" in seen.read_text()
    assert shared["sealed-link"] not in seen.read_text()


@pytest.mark.parametrize(
    ("given", "environ", "code"),
    [
        ({"expect": "another"}, {}, 13),
        ({"bind": "release:v1"}, {}, 13),
        ({"bind": "none"}, {}, 2),
        ({}, {"GITHUB_RUN_ID": "78"}, 13),
        ({}, {"GITHUB_RUN_ID": ""}, 2),
    ],
)
def test_a_link_of_another_run_text_or_share_is_refused(
    job: Start,
    actions: Path,
    key: str,
    shared: dict[str, str],
    given: dict[str, str],
    environ: dict[str, str],
    code: int,
) -> None:
    runner = job("other", **environ)
    given = {"sealed-link": shared["sealed-link"], "link-file": "link", "variable": "LINK", **given}
    step = runner.uses(actions / "unseal", given, {"SEALPIPE_API_KEY": key})
    assert (step.code, step.outputs["outcome"], step.outputs["link"]) == (code, "failed", ""), (
        runner.text
    )
    assert runner.exported == {}
    assert not (runner.workspace / "link").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "the input sealed-link is empty"),
        ({"sealed-link": "https://links.example/s/abc#1xyz"}, "is a link, which the log now shows"),
        *(
            ({"sealed-link": "x", "variable": name}, "not a name that is safe for a link")
            for name in (
                "PATH",
                "LD_PRELOAD",
                "BASH_ENV",
                "link",
                "GITHUB_LINK",
                "SEALPIPE_SEALED_LINK",
                "A_LINK\nB",
            )
        ),
    ],
)
def test_inputs_that_are_not_safe_stop_before_anything_is_opened(
    job: Start, actions: Path, key: str, given: dict[str, str], said: str
) -> None:
    runner = job()
    step = runner.uses(actions / "unseal", given, {"SEALPIPE_API_KEY": key})
    assert (step.code, step.outputs["outcome"]) == (2, "failed")
    assert said in step.annotations("error")[0]
    assert runner.exported == {}


def test_a_step_that_cannot_mask_writes_no_link(
    job: Start, key: str, shared: dict[str, str], tmp_path: Path
) -> None:
    runner = job("other")
    outputs, variables, log = (tmp_path / name for name in ("outputs", "variables", "log"))
    given = {
        "SEALED_LINK": shared["sealed-link"],
        "VARIABLE": "HANDOVER_LINK",
        "LINK_FILE": str(tmp_path / "link"),
    }
    environ = {
        **runner.environ,
        **{f"SEALPIPE_ACTION_{name}": value for name, value in given.items()},
    }
    environ |= {
        "SEALPIPE_API_KEY": key,
        "GITHUB_OUTPUT": str(outputs),
        "GITHUB_ENV": str(variables),
    }
    with log.open("wb") as stream:
        words = [sys.executable, "-I", ROOT / "actions/_run", "unseal"]
        done = subprocess.run(words, env=environ, stderr=stream, check=False)
    assert done.returncode == 2
    assert "cannot be masked because stderr is a file" in log.read_text()
    assert "#1" not in outputs.read_text() + log.read_text()
    assert not variables.exists()
    assert not (tmp_path / "link").exists()
