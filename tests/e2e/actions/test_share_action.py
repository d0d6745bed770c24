"""`actions/share`, run step by step by a fake of the runner, against the rehearsal service."""

from __future__ import annotations

import html
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from e2e.actions.fake_runner import INNER, FakeRunner
from sealpipe.api.operation import Credential
from sealpipe.errors import EnvelopeError, UsageError
from sealpipe.share.sealed_link import unseal
from sealpipe_rehearsal.running_service import RunningService
from support.mailbox import Mailbox, open_mailed_link
from support.parts import ROOT
from support.ports import silent_port
from support.terminal import opened

Start = Callable[..., FakeRunner]


def test_the_link_works_in_its_job_and_is_hidden_in_its_log(
    job: Start, actions: Path, service: RunningService, key: str
) -> None:
    runner = job(hidden={"KEY": key, "PASSWORD": "hunter22-canary"})
    given = {
        "fields": "User=text:deploy\n# a remark\nPassword=env:DB_PASSWORD\n",
        "title": "Staging",
        "views": "2",
    }
    step = runner.uses(
        actions / "share", given, {"SEALPIPE_API_KEY": key, "DB_PASSWORD": "hunter22-canary"}
    )
    assert step.code == 0, runner.text
    assert step.outputs["outcome"] == "created"
    assert step.outputs["error-code"] == ""
    assert step.outputs["custody"] == "stored"
    assert opened(service, step.outputs["link"]) == {
        "User": "deploy",
        "Password": "hunter22-canary",
    }
    link = step.outputs["link"]
    fragment = link.partition("#")[2]
    for canary in (key, "hunter22-canary", link, fragment, fragment[1:]):
        assert canary not in runner.text + runner.summary
    assert step.outputs["short-code"] in runner.text
    assert step.outputs["short-code"] in html.unescape(runner.summary)
    assert "Staging" in runner.summary
    for plain in (service.link_base_url, step.outputs["short-code"], "Staging", "deploy"):
        assert runner.mask(plain) == plain, "what is no secret is not masked"
    assert "unknown variable" not in runner.text, (
        "what the action hands to itself is not sealpipe's"
    )


def test_only_code_expiry_and_sealed_link_reach_another_job_which_opens_that(
    job: Start, actions: Path, service: RunningService, key: str
) -> None:
    runner = job(debug=True)
    given = {"fields": "Password=env:P", "seal-link": "true", "expires-in": "2h"}
    step = runner.uses(actions / "share", given, {"SEALPIPE_API_KEY": key, "P": "hunter22-canary"})
    assert step.outputs["link"]
    assert step.outputs["link"] not in runner.text, "not in debug mode, either"
    kept = runner.job_outputs(step.outputs)
    assert set(kept) == {
        "short-code",
        "expires-at",
        "custody",
        "sealed-link",
        "outcome",
        "executable",
    }
    assert "Skip output 'link'" in runner.text
    other = job("other")
    sealed = {"SEALPIPE_API_KEY": key, "SEALPIPE_SEALED_LINK": kept["sealed-link"]}
    words = ("unseal", "--print", "--bind", "github:acme/app:77", "--expect", kept["short-code"])
    unsealed = _run(other, kept["executable"], *words, **sealed)
    assert unsealed.strip() == step.outputs["link"]
    assert opened(service, unsealed) == {"Password": "hunter22-canary"}


@pytest.mark.parametrize(
    ("given", "bind"),
    [
        ({}, "github:acme/app:77"),
        ({"bind": "release:v1"}, "release:v1"),
        ({"bind": "none"}, None),
    ],
)
def test_a_sealed_link_is_bound_to_the_run_or_to_what_bind_says(
    job: Start, actions: Path, key: str, given: dict[str, str], bind: str | None
) -> None:
    runner = job()
    step = runner.uses(
        actions / "share",
        {"fields": "text:x", "seal-link": "true", **given},
        {"SEALPIPE_API_KEY": key},
    )
    sealed = step.outputs["sealed-link"]
    assert unseal(sealed, Credential.parse(key), bind=bind).reveal() == step.outputs["link"]
    for other in {None, "github:acme/app:77", "github:acme/app:78"} - {bind}:
        with pytest.raises((EnvelopeError, UsageError)):
            unseal(sealed, Credential.parse(key), bind=other)


def test_a_bind_without_a_sealed_link_or_without_a_run_is_refused_before_anything_is_sent(
    job: Start, actions: Path, service: RunningService, key: str
) -> None:
    env = {"SEALPIPE_API_KEY": key}
    step = job().uses(actions / "share", {"fields": "text:x", "bind": "x"}, env)
    assert (step.code, step.outputs["error-code"]) == (2, "2")
    step = job("other", GITHUB_RUN_ID="").uses(
        actions / "share", {"fields": "text:x", "seal-link": "true"}, env
    )
    assert step.code == 2
    assert "bind has no default" in step.annotations("error")[0]
    assert [each for each in service.seen() if each.method == "POST"] == []


def test_outputs_are_exactly_the_declared_ones_and_nothing_is_exported(
    job: Start, actions: Path, key: str
) -> None:
    runner = job()
    step = runner.uses(actions / "share", {"fields": "text:x"}, {"SEALPIPE_API_KEY": key})
    written = [name for name, _ in step.pairs if name not in INNER]
    assert set(written) == set(step.outputs)
    assert sorted(written) == sorted([*step.outputs, "executable"]), (
        "each once; the set-up says its executable, too"
    )
    assert runner.exported == {}
    assert not list(runner.temp.glob("sealpipe-*")), "the file that the link came by is gone"


def test_a_failure_says_its_code_and_outcome_and_is_shown_beside_the_log(
    job: Start, actions: Path, key: str
) -> None:
    runner = job()
    step = runner.uses(actions / "share", {"fields": "env:NOT_THERE"}, {"SEALPIPE_API_KEY": key})
    assert step.code == 14
    assert (step.outputs["outcome"], step.outputs["error-code"], step.outputs["link"]) == (
        "failed",
        "14",
        "",
    )
    assert any("NOT_THERE" in each for each in step.annotations("error"))
    assert "sealpipe: " in runner.text
    assert '{"schema"' not in runner.text, "people get words"


def test_what_was_made_before_it_failed_is_an_output_all_the_same(
    job: Start, actions: Path, key: str
) -> None:
    runner = job()
    given = {"fields": "text:x", "send": "email:nobody@example.com"}
    env = {
        "SEALPIPE_API_KEY": key,
        "SEALPIPE_PLUGIN_EMAIL__HOST": "127.0.0.1",
        "SEALPIPE_PLUGIN_EMAIL__PORT": str(silent_port()),
        "SEALPIPE_PLUGIN_EMAIL__SENDER": "us@example.com",
        "SEALPIPE_PLUGIN_EMAIL__SECURITY": "none",
    }
    step = runner.uses(actions / "share", given, env)
    assert step.code == 11, runner.text
    assert step.outputs["outcome"] == "undelivered"
    assert step.outputs["short-code"]
    assert "resume" in runner.text


def test_a_step_goes_on_once_its_recipient_has_opened_the_link(
    job: Start, actions: Path, service: RunningService, key: str, tmp_path: Path
) -> None:
    runner = job()
    given = {"fields": "text:x", "send": "email:ann@example.com", "wait-until": "opened"}
    with Mailbox(tmp_path) as mailbox, ThreadPoolExecutor() as threads:
        reader = threads.submit(open_mailed_link, mailbox, service)
        env = {"SEALPIPE_API_KEY": key, **mailbox.environ()}
        step = runner.uses(actions / "share", given, env)
    assert list(reader.result().values()) == ["x"]
    assert (step.code, step.outputs["outcome"]) == (0, "created"), runner.text
    assert f"{step.outputs['short-code']} has ended, and was opened" in runner.text


def test_a_step_whose_recipient_opens_nothing_fails_and_may_expire_the_share(
    job: Start, actions: Path, service: RunningService, key: str, tmp_path: Path
) -> None:
    runner = job()
    given = {
        "fields": "text:x",
        "send": "email:ann@example.com",
        "wait-until": "opened",
        "wait-for": "1s",
        "wait-else": "expire",
    }
    with Mailbox(tmp_path) as mailbox:
        env = {"SEALPIPE_API_KEY": key, **mailbox.environ()}
        step = runner.uses(actions / "share", given, env)
    assert (step.code, step.outputs["outcome"]) == (15, "pending"), runner.text
    assert "was expired, and was not opened" in runner.text
    assert [each.method for each in service.seen()].count("DELETE") == 1


def test_who_waits_for_a_recipient_must_send_the_link(
    job: Start, actions: Path, service: RunningService, key: str
) -> None:
    given = {"fields": "text:x", "wait-until": "opened"}
    step = job().uses(actions / "share", given, {"SEALPIPE_API_KEY": key})
    assert (step.code, service.seen()) == (2, [])
    assert "deliver the link with send" in step.annotations("error")[0]


def test_a_rerun_makes_another_share(job: Start, actions: Path, key: str) -> None:
    codes = set()
    for attempt in ("1", "2"):
        runner = job(attempt, GITHUB_RUN_ATTEMPT=attempt)
        step = runner.uses(actions / "share", {"fields": "text:x"}, {"SEALPIPE_API_KEY": key})
        codes.add(step.outputs["short-code"])
    assert len(codes) == 2


def test_without_a_masked_link_something_else_has_to_take_it(
    job: Start, actions: Path, service: RunningService, key: str
) -> None:
    runner = job()
    given = {"fields": "text:x", "mask-link": "false"}
    step = runner.uses(actions / "share", given, {"SEALPIPE_API_KEY": key})
    assert step.code == 2
    assert "the link has no destination" in step.annotations("error")[0]
    assert [each for each in service.seen() if each.method == "POST"] == []
    step = runner.uses(actions / "share", {**given, "seal-link": "true"}, {"SEALPIPE_API_KEY": key})
    assert step.outputs["sealed-link"]
    assert step.outputs["link"] == ""
    assert not [each for each in step.commands if each.name == "add-mask"]


def test_a_link_file_of_ones_own_is_written_and_one_that_is_there_is_left_alone(
    job: Start, actions: Path, service: RunningService, key: str
) -> None:
    runner = job()
    given = {"fields": "text:x", "link-file": "link"}
    step = runner.uses(actions / "share", given, {"SEALPIPE_API_KEY": key})
    file = runner.workspace / "link"
    assert file.read_text() == step.outputs["link"] + "\n"
    assert file.stat().st_mode & 0o777 == 0o600
    again = runner.uses(actions / "share", given, {"SEALPIPE_API_KEY": key})
    assert (again.code, again.outputs["link"], again.outputs["outcome"]) == (2, "", "failed")
    assert len([each for each in service.seen() if each.method == "POST"]) == 1


def test_what_earlier_steps_say_to_python_is_not_heard(job: Start, actions: Path, key: str) -> None:
    runner = job()
    evil = runner.workspace / "evil"
    evil.mkdir()
    for name in ("sitecustomize", "json", "click", "sealpipe_action"):
        (evil / f"{name}.py").write_text(
            "import sys; sys.stderr.write('taken over'); sys.exit(66)\n"
        )
    env = {"SEALPIPE_API_KEY": key, "PYTHONPATH": str(evil), "PYTHONSTARTUP": str(evil / "json.py")}
    step = runner.uses(actions / "share", {"fields": "text:x"}, env)
    assert (step.code, step.outputs["outcome"]) == (0, "created"), runner.text


def test_a_sealpipe_that_cannot_be_run_fails_the_step_in_words(
    job: Start, actions: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "checkout" / "actions"
    shutil.copytree(actions.parent, broken.parent)
    (broken / "_setup" / "setup.sh").write_text(
        "echo executable=/no/such/sealpipe >> $GITHUB_OUTPUT\n"
    )
    step = job().uses(broken / "share", {"fields": "text:x"}, {"SEALPIPE_API_KEY": "k"})
    assert (step.code, step.outputs["outcome"], step.outputs["error-code"]) == (2, "failed", "2")
    assert "/no/such/sealpipe cannot be run: No such file" in step.annotations("error")[0]


def test_a_set_up_that_fails_is_an_outcome_too(job: Start, actions: Path, tmp_path: Path) -> None:
    broken = tmp_path / "checkout" / "actions"
    shutil.copytree(actions.parent, broken.parent)
    shutil.copytree(ROOT / "actions" / "_setup", broken / "_setup", dirs_exist_ok=True)
    step = job().uses(
        broken / "share", {"fields": "text:x", "executable": "/no/such"}, {"SEALPIPE_API_KEY": "k"}
    )
    assert (step.code, step.outputs["outcome"], step.outputs["error-code"]) == (2, "failed", "2")
    assert "there is no program /no/such" in step.annotations("error")[0]


def test_a_dry_run_tells_what_it_would_do_and_sends_nothing(
    job: Start, actions: Path, service: RunningService, key: str
) -> None:
    runner = job()
    env = {"SEALPIPE_API_KEY": key, "P": "hunter22-canary"}
    step = runner.uses(actions / "share", {"fields": "Password=env:P", "dry-run": "true"}, env)
    assert (step.code, step.outputs["outcome"]) == (0, "dry-run")
    assert "field Password (password)" in runner.text
    assert [each for each in service.seen() if each.method == "POST"] == []


def test_fields_come_from_a_file_too_and_a_recipient_is_only_data(
    job: Start, actions: Path, key: str
) -> None:
    runner = job()
    (runner.workspace / "fields.txt").write_text("# ours\r\nA=text:1\r\n\r\nB=text:2\r\n")
    given = {
        "fields": "C=text:3",
        "fields-from": "fields.txt",
        "send": "email:{recipient}",
        "recipient": "x@example.com,second@example.com --title=oops\n",
        "dry-run": "true",
    }
    env = {"SEALPIPE_API_KEY": key, "SEALPIPE_PLUGIN_EMAIL__HOST": "127.0.0.1"}
    env |= {"SEALPIPE_PLUGIN_EMAIL__SENDER": "us@example.com"}
    step = runner.uses(actions / "share", given, env)
    assert step.code in (2, 14), "two recipients in one are none"
    step = runner.uses(actions / "share", {**given, "recipient": "x@example.com"}, env)
    assert step.code == 0, runner.text
    for label in "ABC":
        assert f"field {label} (text)" in runner.text


@pytest.mark.parametrize("action", ["share", "request"])
def test_a_recipient_from_a_variable_that_is_not_set_is_named(
    job: Start, actions: Path, service: RunningService, key: str, action: str
) -> None:
    given = {"share": {"fields": "text:x"}, "request": {"ask": "Password"}}[action]
    given |= {"send": "email:{recipient}", "recipient": ""}
    env = {"SEALPIPE_API_KEY": key, "SEALPIPE_PLUGIN_EMAIL__HOST": "127.0.0.1"}
    env |= {"SEALPIPE_PLUGIN_EMAIL__SENDER": "us@example.com"}
    step = job().uses(actions / action, given, env)
    (said,) = step.annotations("error")
    assert (
        step.code,
        said.startswith("the input recipient is empty, and send has {recipient}"),
    ) == (2, True)
    assert "--param" not in said
    assert service.seen() == []
    by_param = {**given, "param": "recipient=text:a@example.com", "dry-run": "true"}
    assert job("by-param").uses(actions / action, by_param, env).code == 0


def _run(runner: FakeRunner, executable: str, *words: str, **environ: str) -> str:
    done = subprocess.run(
        [executable, *words],
        env={**runner.environ, **environ},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout
