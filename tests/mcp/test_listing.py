"""An assistant lists, looks at and ends what its server made, and can neither reach nor destroy
anything else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sealpipe.mcp import listing
from support.fake_web import Receiver
from support.job import Job, made, submitted
from support.terminal import opened

SECRET = "canary-of-a-submission"


@pytest.fixture
def asked(connect: Any, tmp_path: Path) -> tuple[Any, dict[str, Any]]:
    """An assistant, and the request that it has made."""
    assistant = connect()
    to = f"file:{tmp_path}/password"
    return assistant, assistant.call(
        "request_secret", prompts=[{"text": "Password"}], to=to, title="For the app"
    )


def test_what_was_made_is_listed_with_its_state(asked: Any, job: Job, connect: Any) -> None:
    assistant, request = asked
    made(job)  # by hand: no business of the assistant
    (row,) = assistant.call("list")["made"]
    assert row["code"] == request["code"]
    assert row["stored_in"] == request["stored_in"]
    assert (row["kind"], row["state"], row["sent_to"]) == ("request", "active", [])
    assert (row["title"], row["client"]) == ({"untrusted": "For the app"}, {"untrusted": "helper"})
    assert row["name"].startswith("mcp-")
    assistant.call("expire", code=request["code"])
    assert connect("legacy").call("list") == {"made": [{**row, "state": "ended"}], "left_out": 0}


def test_nothing_else_can_be_looked_at_or_ended(asked: Any, job: Job) -> None:
    assistant, _ = asked
    other = made(job)
    for tool in ("status", "expire"):
        for code in (other, "no-such-code", "../requests", other.swapcase()):
            assert assistant.fail(tool, code=code)["kind"] == "NotFoundError"
    assert job.run("requests", "list").out.count("\n") == 2


def test_a_request_with_a_submission_is_not_ended(asked: Any, job: Job, tmp_path: Path) -> None:
    assistant, request = asked
    code = request["code"]
    assert assistant.call("status", code=code)["submissions"] == 0
    job.service.submitter().submit(request["link"], {"Password": SECRET})
    shown = assistant.call("status", code=code)
    assert (shown["state"], shown["submissions"]) == ("active", 1)
    failed = assistant.fail("expire", code=code)
    assert "collect_secret" in str(failed)
    assert assistant.call("collect_secret", code=code)["request"] == "expired"
    assert (tmp_path / "password").read_text() == SECRET
    for _ in range(2):  # a second DELETE would destroy the submission
        ended = assistant.call("expire", code=code)
        assert ended == {
            "code": code,
            "kind": "request",
            "outcome": "already-expired",
            "submissions": 1,
        }
    assert SECRET not in "".join(assistant.received)


def test_a_submission_at_the_last_moment_is_kept(
    asked: Any, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    assistant, request = asked
    look = listing._look_at_request

    def look_too_early(*arguments: Any) -> Any:
        found = yield from look(*arguments)
        job.service.submitter().submit(request["link"], {"Password": SECRET})
        return found

    monkeypatch.setattr(listing, "_look_at_request", look_too_early)
    ended = assistant.call("expire", code=request["code"])
    assert (ended["outcome"], ended["submissions"]) == ("expired", 1)
    assert '"submission"' in next((job.state / "requests").glob("*.jsonl")).read_text()
    monkeypatch.undo()
    assert assistant.call("collect_secret", code=request["code"])["stored"]


def test_a_share_ends_and_the_same_call_makes_another(
    connect: Any, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEALPIPE_PLUGIN_WEBHOOK__SECRET", "whsec-0123456789abcdef")
    with Receiver() as receiver:
        assistant = connect()
        words = {"fields": [{"reference": "text:hello"}], "to": receiver.target}
        code = assistant.call("share_secret", **words)["code"]
        assert assistant.call("status", code=code)["state"] == "active"
        outcomes = [assistant.call("expire", code=code)["outcome"] for _ in range(2)]
        assert outcomes == ["expired", "already-expired"]
        assert assistant.call("status", code=code)["state"] == "ended"
        again = assistant.call("share_secret", **words)
        assert (again["repeated"], again["code"] != code) == (False, True)
        opened(job.service, receiver.secrets[-1])
        assert assistant.call("status", code=again["code"])["state"] == "ended"
        assert assistant.call("expire", code=again["code"])["outcome"] == "already-expired"
        assert all(link not in "".join(assistant.received) for link in receiver.secrets)


def test_a_submission_elsewhere_does_not_count(asked: Any, job: Job) -> None:
    assistant, request = asked
    submitted(job, made(job), "x")
    assert assistant.call("expire", code=request["code"])["outcome"] == "expired"


def test_a_key_that_cannot_list_still_tells_what_was_made(
    connect: Any, job: Job, tmp_path: Path
) -> None:
    job.api_key = job.service.create_key(account=job.account, scopes=["requests:write"]).reveal()
    assistant = connect()
    to = f"file:{tmp_path}/password"
    request = assistant.call("request_secret", prompts=[{"text": "Password"}], to=to)
    (row,) = assistant.call("list")["made"]
    assert (row["code"], row["state"]) == (request["code"], "unknown")


def test_what_was_not_sent_stays_unsent_until_a_person_resumes_it(
    connect: Any, job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEALPIPE_PLUGIN_WEBHOOK__SECRET", "whsec-0123456789abcdef")
    words = {"prompts": [{"text": "Password"}], "to": f"file:{tmp_path}/password"}
    with Receiver() as receiver:
        assistant = connect()
        answers, receiver.answers = receiver.answers, lambda _: 403
        assert (
            assistant.fail("request_secret", **words, send=[receiver.target])["kind"]
            == "DeliveryError"
        )
        receiver.answers, tried = answers, len(receiver.hooks)
        assistant.call("request_secret", **words)
        rows = assistant.call("list")["made"]
        assert sorted((row["finished"], row["state"], row["sent_to"]) for row in rows) == [
            (False, "active", []),
            (True, "active", []),
        ]
        assert len(receiver.hooks) == tried
        assert job.resume(SEALPIPE_PLUGIN_WEBHOOK__SECRET="whsec-0123456789abcdef").code == 0
        assert len(receiver.hooks) == tried + 1
        assert all(row["finished"] for row in assistant.call("list")["made"])
