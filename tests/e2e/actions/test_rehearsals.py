"""`rehearse: true` in the actions that need something: a submission, a share, a sealed link, a
batch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from e2e.actions.fake_runner import INNER, Ended, FakeRunner
from sealpipe_rehearsal.commands import ci_job
from sealpipe_rehearsal.running_service import RunningService
from support.ci_jobs import batch_file
from support.parts import ROOT, load_module

Start = Callable[..., FakeRunner]
PAGES = load_module("action_pages_of_rehearsals", Path(__file__).with_name("pages.py"))
REAL = {"SEALPIPE_API_KEY": "", "SEALPIPE_BASE_URL": "https://real.example/v1"}
BATCH = batch_file("slack:")


@pytest.fixture
def rehearse(
    job: Start, actions: Path, service: RunningService
) -> Iterator[Callable[..., tuple[FakeRunner, Ended]]]:
    """Rehearse an action, without a credential: the real service hears nothing."""
    runner = job()

    def run(action: str, given: dict[str, str], **env: str) -> tuple[FakeRunner, Ended]:
        return runner, runner.uses(actions / action, {**given, "rehearse": "true"}, {**REAL, **env})

    yield run
    assert service.seen() == []


Rehearse = Callable[..., tuple[FakeRunner, Ended]]


def test_a_request_hands_its_receipt_to_a_collect_that_shows_what_it_would_store(
    rehearse: Rehearse,
) -> None:
    runner, asked = rehearse(
        "request", {"ask": "user=User name:text\nPassword", "receipt": "acme.json"}
    )
    assert (asked.code, asked.outputs["outcome"]) == (0, "created"), runner.text
    given = {
        "requests": asked.outputs["receipt"],
        "to": "vault:secret/acme#user,pw=Password",
        "after": "expire",
    }
    runner, step = rehearse("collect", given, VAULT_ADDR="https://vault.example")
    assert (step.code, step.outputs["outcome"]) == (0, "dry-run"), runner.text
    assert (
        "would store secret/acme in Vault at vault.example if it does not exist (user, pw)"
        in runner.text
    )
    assert not list(runner.workspace.glob("*/"))


def test_collect_makes_up_what_map_names(rehearse: Rehearse) -> None:
    runner, step = rehearse(
        "collect", {"requests": "no-such-code", "map": "pw=Staging password\nuser=User:text"}
    )
    assert (step.code, step.outputs["outcome"], step.outputs["count"]) == (0, "collected", "1"), (
        runner.text
    )
    assert json.loads(step.outputs["values"]) == {
        "pw": "stand-in for Staging password",
        "user": "stand-in for User",
    }
    assert runner.mask(step.outputs["values"]) != step.outputs["values"]


def test_expire_ends_made_up_shares_and_requests_of_these_codes(rehearse: Rehearse) -> None:
    runner, step = rehearse("expire", {"shares": "one\n-two", "requests": "three"})
    assert (step.code, step.outputs["outcome"]) == (0, "expired"), runner.text
    assert step.outputs["expired"].split() == ["one", "-two", "three"]
    written = {name for name, _ in step.pairs} - INNER
    assert written == set(step.outputs), "what is made up sets no outputs"


@pytest.mark.parametrize("sealed", ["", "from-another-rehearsal"])
def test_unseal_opens_a_made_up_link_and_masks_it(rehearse: Rehearse, sealed: str) -> None:
    runner, step = rehearse(
        "unseal", {"sealed-link": sealed, "expect": "other", "variable": "HANDOVER_LINK"}
    )
    assert (step.code, step.outputs["outcome"]) == (0, "opened"), runner.text
    assert step.outputs["link"] == runner.exported["HANDOVER_LINK"]
    assert step.outputs["link"].startswith("http://127.0.0.1:")
    assert step.outputs["link"].partition("#")[2] not in runner.text
    assert any("expect" in each for each in step.annotations("notice"))


@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_batch_is_planned_as_for_its_first_run(
    rehearse: Rehearse, job: Start, command: str
) -> None:
    place = job("with-a-file").workspace
    (place / "vendors.toml").write_text(BATCH)
    given = {
        "file": str(place / "vendors.toml"),
        "command": command,
        "database": "env:DATABASE_URL",
    }
    runner, step = rehearse(
        "batch", given, SLACK_WEBHOOK_URL="https://hooks.slack.com/services/T/B/x"
    )
    assert (step.code, step.outputs["outcome"]) == (0, "planned"), runner.text
    assert json.loads(step.outputs["counts"]) == {"create": 1}


@pytest.mark.parametrize("action", sorted(PAGES.INPUTS))
def test_the_action_ignores_what_the_command_line_ignores(action: str) -> None:
    wanted = [each for each in PAGES.INPUTS[action] if each.real and each.flag]
    assert {each.name.replace("-", "_") for each in wanted} == set(ci_job.LEFT_OUT[action])


def test_every_action_can_be_rehearsed() -> None:
    manifests = sorted(each.parent.name for each in ROOT.glob("actions/*/action.yml"))
    assert manifests == sorted(ci_job.LEFT_OUT)
    assert all("rehearse" in PAGES.loaded(action)["inputs"] for action in manifests)
