"""`actions/batch`, against the rehearsal service: runs, plans, decisions, and what log, summary and
outputs say.
"""

from __future__ import annotations

import html
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.actions.fake_runner import Ended, FakeRunner
from sealpipe_rehearsal.running_service import RunningService
from support.ci_jobs import later_sealpipe
from support.mailbox import Mailbox

Start = Callable[..., FakeRunner]
Batch = Callable[..., Ended]
FILE = """
name = "vendors"
kind = "request"
rows = "vendors.csv"
key = "name"
[request]
ask = ["Password"]
send = ["file:{name}.link"]
[collect]
to = ["file:{name}.secret"]
"""
ROWS = "name,email\nacme,ann@acme.example\nbolt,bob@bolt.example\n"


@pytest.fixture
def runner(job: Start) -> FakeRunner:
    """A job whose checkout has a batch of two vendors."""
    runner = job()
    (runner.workspace / "vendors.toml").write_text(FILE)
    (runner.workspace / "vendors.csv").write_text(ROWS)
    return runner


@pytest.fixture
def batch(runner: FakeRunner, actions: Path, key: str) -> Batch:
    """Run the action with these inputs (`_` for `-`)."""

    def use(command: str = "run", **given: str) -> Ended:
        named = {name.replace("_", "-"): value for name, value in given.items()}
        env = {"SEALPIPE_API_KEY": key}
        return runner.uses(
            actions / "batch", {"file": "vendors.toml", "command": command, **named}, env
        )

    return use


def submit(runner: FakeRunner, service: RunningService, name: str, value: str) -> str:
    """A vendor follows the link that was delivered to its file; returns it."""
    text = (runner.workspace / f"{name}.link").read_text()
    link = next(word for word in text.split() if word.startswith("http"))
    service.submitter().submit(link, {"Password": value})
    return link


def counts(step: Ended) -> dict[str, int]:
    found: dict[str, int] = json.loads(step.outputs["counts"])
    return found


def rows_of(runner: FakeRunner) -> list[str]:
    """The rows of the last table in the summary, as a person reads them."""
    return html.unescape(runner.summary).rpartition("| --- |\n")[2].splitlines()


def test_each_run_does_what_is_due_and_shows_each_row(
    runner: FakeRunner, batch: Batch, service: RunningService, tmp_path: Path
) -> None:
    step = batch()
    assert (step.code, step.outputs["outcome"], step.outputs["changes"]) == (0, "pending", "4"), (
        runner.text
    )
    assert counts(step) == {"waiting": 2}
    assert "acme: delivered" in runner.text
    assert rows_of(runner)[0].startswith("| acme | waiting | poll, 20")
    links = [submit(runner, service, name, f"canary-of-{name}") for name in ("acme", "bolt")]
    step = batch(detailed_exit_code="true", executable=str(later_sealpipe(tmp_path / "later", 120)))
    assert (step.code, step.outputs["outcome"], counts(step)) == (0, "done", {"done": 2}), (
        runner.text
    )
    assert (runner.workspace / "acme.secret").read_text() == "canary-of-acme"
    told = runner.text + runner.summary
    assert not [secret for secret in ("canary", *links) if secret in told]
    assert step.commands == []


def test_what_came_is_collected_at_once(
    runner: FakeRunner, batch: Batch, service: RunningService
) -> None:
    batch()
    assert batch("collect").code == 15, "nothing is there yet"
    submit(runner, service, "acme", "canary-of-acme")
    step = batch("collect", only="acme")
    assert (step.code, step.outputs["changes"], counts(step)) == (0, "1", {"waiting": 1, "done": 1})
    assert "acme: collected" in runner.text
    assert (runner.workspace / "acme.secret").read_text() == "canary-of-acme"


def test_rows_that_wait_fail_only_a_step_that_asks_for_it(batch: Batch) -> None:
    step = batch(detailed_exit_code="true", only="bolt")
    assert (step.code, step.outputs["outcome"], step.outputs["error-code"]) == (15, "pending", "15")
    assert counts(step) == {"new": 1, "waiting": 1}
    assert "2 rows still wait" in step.annotations("error")[0]


def test_an_approved_plan_is_done_exactly_or_not_at_all(
    runner: FakeRunner, batch: Batch, service: RunningService
) -> None:
    planned = batch("plan", out="approved.json")
    assert (planned.code, planned.outputs["outcome"], planned.outputs["plan"]) == (
        0,
        "planned",
        "approved.json",
    )
    assert (counts(planned), planned.outputs["changes"]) == ({"create": 2}, "2")
    assert rows_of(runner) == ["| acme | create |  |", "| bolt | create |  |", ""]
    assert service.seen() == []
    (runner.workspace / "vendors.toml").write_text(FILE.replace("Password", "Root password"))
    refused = batch(plan="approved.json")
    assert (refused.code, refused.outputs["outcome"], refused.outputs["counts"]) == (
        2,
        "failed",
        "",
    )
    assert "the plan no longer holds" in refused.annotations("error")[0]
    assert service.seen() == []
    (runner.workspace / "vendors.toml").write_text(FILE)
    assert counts(batch(plan="approved.json")) == {"waiting": 2}
    again = batch("plan")
    assert (counts(again), again.outputs["changes"], again.outputs["plan"]) == (
        {"wait": 2},
        "0",
        "",
    )


def test_after_a_lost_database_rows_are_adopted_and_a_person_decides(
    runner: FakeRunner, batch: Batch, service: RunningService
) -> None:
    batch()
    shutil.rmtree(runner.temp / "sealpipe")
    step = batch("adopt")
    assert (step.code, step.outputs["outcome"], step.outputs["changes"]) == (0, "adopted", "2"), (
        runner.text
    )
    assert counts(step) == {"blocked": 2}
    assert "`sealpipe batch remind vendors acme`" in rows_of(runner)[0]
    (runner.workspace / "acme.link").unlink()
    decided = batch("remind", only="acme")
    assert (counts(decided), decided.outputs["changes"]) == ({"blocked": 1, "waiting": 1}, "1")
    assert [seen.method for seen in service.seen()].count("POST") == 2


ADDRESSES = ("ann@acme.example", "bob@bolt.example")


def test_addresses_are_shown_only_on_request(
    runner: FakeRunner, batch: Batch, tmp_path: Path
) -> None:
    by_mail = FILE.replace("file:{name}.link", "email:{email}").replace(
        'key = "name"', 'key = "email"'
    )
    (runner.workspace / "vendors.toml").write_text(by_mail)
    with Mailbox(tmp_path) as mailbox:
        mailbox.answers.rcpt = "550 5.1.1 no such user"
        runner.environ |= mailbox.environ()
        hidden = batch()
        assert (hidden.code, hidden.outputs["outcome"], hidden.outputs["error-code"]) == (
            18,
            "troubled",
            "18",
        )
        assert counts(hidden) == {"failed": 2}
        assert "has no mailbox (address)" in runner.text
        (runner.workspace / "vendors.csv").write_text(ROWS + ROWS.partition("\n")[2])
        wrong = batch("plan")
        said = "vendors.toml: 2 mistakes; nothing was sent"
        assert (wrong.code, wrong.annotations("error")) == (
            2,
            [f"{said} (correct them, and run the command again)"],
        )
        assert runner.text.count("\n  vendors.csv:") == 2
        assert not [
            each for each in ADDRESSES if each in runner.text + html.unescape(runner.summary)
        ]
        (runner.workspace / "vendors.csv").write_text(ROWS)
        assert batch(addresses="true").code == 18
    for told in (runner.text, html.unescape(runner.summary)):
        assert [each for each in ADDRESSES if each not in told] == []


HOSTILE = "::add-mask::deploy ##[error]x <img src=x onerror=y> [l](https://evil.example) | b |"


def test_a_hostile_key_is_only_text(runner: FakeRunner, batch: Batch) -> None:
    (runner.workspace / "vendors.toml").write_text(FILE.replace("{name}", "{email}"))
    (runner.workspace / "vendors.csv").write_text(f'name,email\n"{HOSTILE}",file\n')
    step = batch()
    assert (step.code, step.commands) == (0, []), runner.text
    assert runner.mask("deploy") == "deploy"
    (row,) = [line for line in runner.summary.splitlines() if "deploy" in line]
    assert not set("<>[]()`*@!:") & set(row)
    assert row.count("|") == 5


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"file": ""}, "the input file is empty"),
        ({"command": "worker"}, "the input command must be one of run, plan"),
        ({"command": "plan", "plan": "approved.json"}, "the input plan does not apply to plan"),
        (
            {"command": "adopt", "detailed-exit-code": "true"},
            "the input detailed-exit-code does not apply to adopt",
        ),
        ({"command": "cancel", "only": "\n"}, "cancel has no row"),
    ],
)
def test_inputs_that_do_not_fit_stop_the_step(
    batch: Batch, given: dict[str, str], said: str
) -> None:
    step = batch(**given)
    assert (step.code, step.outputs["outcome"]) == (2, "failed")
    assert said in step.annotations("error")[0]


def test_the_files_text_says_which_extras_are_needed(runner: FakeRunner, batch: Batch) -> None:
    (runner.workspace / "vendors.toml").write_text(
        FILE.replace("file:{name}.secret", "vault:secret/{name}#password")
    )
    step = batch("plan", database="env:DATABASE_URL")
    assert dict(step.pairs)["extras"] == "vault,batch"
    assert (step.code, step.outputs["outcome"]) == (14, "failed"), "there is no such variable"
