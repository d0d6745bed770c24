"""`actions/request`, `collect` and `expire`, against the rehearsal service."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.actions.fake_runner import Ended, FakeRunner
from sealpipe_rehearsal.running_service import RunningService

Start = Callable[..., FakeRunner]


@pytest.fixture
def env(key: str) -> dict[str, str]:
    return {"SEALPIPE_API_KEY": key}


def asked(runner: FakeRunner, actions: Path, env: dict[str, str], **given: str) -> Ended:
    step = runner.uses(
        actions / "request", {"ask": "user=User name:text\nStaging password", **given}, env
    )
    assert (step.code, step.outputs["outcome"]) == (0, "created"), runner.text
    return step


def test_a_request_is_collected_by_its_receipt_stored_and_ended(
    job: Start, actions: Path, service: RunningService, env: dict[str, str]
) -> None:
    runner = job()
    made = asked(runner, actions, env, receipt="acme.json")
    assert runner.job_outputs(made.outputs)["link"] == made.outputs["link"], (
        "a collect link is no secret"
    )
    service.submitter().submit(
        made.outputs["link"], {"User name": "deploy", "Staging password": "hunter22-canary"}
    )
    given = {
        "requests": made.outputs["receipt"],
        "to": "file:password#staging_password",
        "after": "expire",
    }
    step = runner.uses(actions / "collect", given, env)
    assert step.code == 0, runner.text
    assert (step.outputs["outcome"], step.outputs["count"], step.outputs["values"]) == (
        "collected",
        "1",
        "",
    )
    assert (runner.workspace / "password").read_text() == "hunter22-canary"
    assert "hunter22-canary" not in runner.text + runner.summary
    again = runner.uses(actions / "expire", {"requests": made.outputs["short-code"]}, env)
    assert again.outputs["outcome"] == "expired", "it had expired before: nothing was purged"
    assert step.commands == [], "nothing stood on stdout, so nothing is masked"


def test_the_plan_of_a_dry_run_has_blanks_between_its_cells(
    job: Start, actions: Path, service: RunningService, env: dict[str, str]
) -> None:
    runner = job()
    made = asked(runner, actions, env)
    service.submitter().submit(
        made.outputs["link"], {"User name": "deploy", "Staging password": "hunter22-canary"}
    )
    given = {
        "requests": made.outputs["short-code"],
        "to": "file:password#Staging password",
        "dry-run": "true",
    }
    step = runner.uses(actions / "collect", given, env)
    assert (step.code, step.outputs["outcome"]) == (0, "dry-run"), runner.text
    assert re.search(rf"^{made.outputs['short-code']}  \S+  would write", step.raw, re.MULTILINE), (
        step.raw
    )
    assert "\\t" not in step.raw


def test_a_map_names_prompts_by_their_ids_and_the_request_ends_last(
    job: Start, actions: Path, service: RunningService, env: dict[str, str]
) -> None:
    runner = job()
    made = asked(runner, actions, env, receipt="acme.json")
    service.submitter().submit(
        made.outputs["link"], {"User name": "deploy", "Staging password": "hunter22-canary"}
    )
    given = {
        "requests": "acme.json",
        "map": "pw = staging_password\nuser=user:text",
        "after": "expire",
    }
    step = runner.uses(actions / "collect", given, env)
    assert step.code == 0, runner.text
    assert json.loads(step.outputs["values"]) == {"pw": "hunter22-canary", "user": "deploy"}
    posted = [
        each.method for each in service.seen() if each.target.endswith(made.outputs["short-code"])
    ]
    assert posted.count("DELETE") == 1
    assert [name for name, _ in step.pairs].index("values") < [
        name for name, _ in step.pairs
    ].index("outcome")


@pytest.mark.parametrize(
    ("choice", "code", "level"),
    [("fail", 15, "error"), ("warn", 0, "warning"), ("skip", 0, "notice")],
)
def test_there_is_no_submission_yet(
    job: Start, actions: Path, env: dict[str, str], choice: str, code: int, level: str
) -> None:
    runner = job()
    made = asked(runner, actions, env)
    given = {
        "requests": made.outputs["short-code"],
        "map": "pw=Staging password",
        "on-pending": choice,
    }
    step = runner.uses(actions / "collect", given, env)
    assert (step.code, step.outputs["outcome"], step.outputs["values"]) == (code, "pending", "")
    assert step.outputs["error-code"] == (str(code) if code else "")
    shown = [each.name for each in step.commands if each.name != "add-mask"]
    assert shown == [level], "a step that passes shows no error"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"map": "a=b"}, "the input requests is empty"),
        ({"requests": "x"}, "submissions have no destination"),
        ({"requests": "x", "map": "a=b", "to": "file:x"}, "map cannot be combined"),
        ({"requests": "x\ny", "map": "a=b"}, "map needs one submission"),
        ({"requests": "x", "map": "a=b", "pick": "each"}, "map needs one submission"),
        ({"requests": "x", "map": "PATH X=b"}, "not NAME=PROMPT"),
        ({"requests": "x", "map": "a=b\na=c"}, "the name a twice"),
        ({"requests": "x", "map": "a=b", "on-pending": "perhaps"}, "on-pending"),
        ({"requests": "x", "map": "a=b", "dry-run": "yes"}, "must be true or false"),
    ],
)
def test_inputs_that_contradict_each_other_stop_before_anything_is_asked(
    job: Start,
    actions: Path,
    service: RunningService,
    env: dict[str, str],
    given: dict[str, str],
    said: str,
) -> None:
    runner = job()
    step = runner.uses(actions / "collect", given, env)
    assert (step.code, step.outputs["outcome"]) == (2, "failed")
    assert said in step.annotations("error")[0]
    assert service.seen() == []


@pytest.mark.parametrize("name", ["SEALPIPE_COLLECT_TO", "SEALPIPE_COLLECT_DIR"])
def test_a_place_in_the_environment_contradicts_a_map_too(
    job: Start, actions: Path, service: RunningService, env: dict[str, str], name: str
) -> None:
    step = job().uses(actions / "collect", {"requests": "x", "map": "a=b"}, {**env, name: "file:x"})
    assert (step.code, step.outputs["outcome"]) == (2, "failed")
    assert f"map cannot be combined with the variable {name}" in step.annotations("error")[0]
    assert service.seen() == []


def test_expire_ends_shares_and_requests_and_goes_on_after_a_failure(
    job: Start, actions: Path, env: dict[str, str]
) -> None:
    runner = job()
    shared = runner.uses(actions / "share", {"fields": "text:x"}, env).outputs["short-code"]
    request = asked(runner, actions, env).outputs["short-code"]
    given = {"shares": f"-no-such-share\n{shared}", "requests": f"{request}\n"}
    step = runner.uses(actions / "expire", given, env)
    assert (step.code, step.outputs["error-code"], step.outputs["outcome"]) == (6, "6", "failed")
    assert step.outputs["expired"].split() == [shared, request]
    assert step.outputs["missing"] == "-no-such-share"
    step = runner.uses(actions / "expire", {"shares": shared}, env)
    assert (step.code, step.outputs["outcome"], step.outputs["expired"]) == (0, "expired", shared)
    step = runner.uses(actions / "expire", {"shares": "no-such-share", "missing-ok": "true"}, env)
    assert (step.code, step.outputs["outcome"], step.outputs["missing"]) == (
        0,
        "missing",
        "no-such-share",
    )
    assert step.commands == []


def test_without_a_code_there_is_nothing_to_expire_and_that_is_no_failure(
    job: Start, actions: Path, service: RunningService, env: dict[str, str]
) -> None:
    runner = job()
    step = runner.uses(actions / "expire", {"shares": "", "requests": "\n"}, env)
    assert (step.code, step.outputs["outcome"]) == (0, "nothing")
    assert service.seen() == []
