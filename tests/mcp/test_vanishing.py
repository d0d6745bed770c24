"""Calls that are cancelled, clients that vanish, and two at once: nothing is doubled or lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import CancelledError, as_completed
from pathlib import Path
from typing import Any

import pytest

from sealpipe.mcp import server
from support.faults import holds
from support.faulty import Faulty
from support.job import Job, client_of
from support.terminal import PATIENCE

SECRET = "canary-of-two-clients"


def codes_of(job: Job) -> set[str]:
    """The codes of all requests."""
    with client_of(job) as client:
        return {each.short_code for each in client.iter_requests()}


@pytest.mark.parametrize(
    ("mode", "ending"), [("auto", "cancelled"), ("legacy", "cancelled"), ("legacy", "vanished")]
)
def test_what_was_being_made_is_found_again(
    connect: Any, job: Job, proxied: Callable[..., Faulty], tmp_path: Path, mode: str, ending: str
) -> None:
    between = proxied(holds)
    job.terminal.environ["SEALPIPE_BASE_URL"] = between.base_url
    wanted = {"prompts": [{"text": "Password"}], "to": f"file:{tmp_path}/password"}
    assistant = connect(mode)
    call = assistant.begin("request_secret", **wanted)
    assert between.committed.wait(PATIENCE)
    if ending == "cancelled":
        call.cancel()
        with pytest.raises(CancelledError):
            call.result(PATIENCE)
        between.released.set()
    else:
        between.released.set()
        assistant.leave()
        assistant = connect(mode)
    codes = {assistant.call("request_secret", **wanted)["code"]}
    deadline = time.monotonic() + PATIENCE  # the cancelled call may still be at its end
    while (found := {row["code"] for row in assistant.call("list")["made"]}) != codes_of(
        job
    ) or job.entries():
        assert time.monotonic() < deadline, found
        time.sleep(0.05)
    assert len(found) == 2
    assert codes < found


def test_what_a_person_has_begun_is_left_to_them(connect: Any, job: Job) -> None:
    job.service.set_faults(
        {"fault": "reset", "after_commit": True, "when": "POST /requests", "times": "always"}
    )
    begun = job.run("request", "-a", "Password", "--name", "mcp-of-a-person", "--deadline", "1s")
    job.service.set_faults()
    (entry,) = job.entries()
    assert begun.code == 9
    assert connect().call("list")["made"] == []
    assert job.entries() == [entry]
    assert job.run("resume", entry).code == 0


def test_two_clients_collect_one_submission_once(connect: Any, job: Job, tmp_path: Path) -> None:
    first, second = connect("auto"), connect("legacy")
    made = first.call(
        "request_secret", prompts=[{"text": "Password"}], to=f"file:{tmp_path}/password"
    )
    job.service.submitter().submit(made["link"], {"Password": SECRET})
    calls = [
        each.begin("collect_secret", code=made["code"]) for each in (first, second, first, second)
    ]
    answers = [call.result(PATIENCE).structured_content for call in calls]
    assert sorted(answer["stored"][0]["already"] for answer in answers) == [False, True, True, True]
    assert {answer["request"] for answer in answers} == {"expired"}
    assert (tmp_path / "password").read_text() == SECRET
    ended = [
        each
        for each in job.service.seen()
        if each.method == "DELETE" and made["code"] in each.target
    ]
    assert len(ended) == 1


def test_only_so_many_calls_wait_at_once(
    connect: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_CALLS", 2)
    assistant = connect("legacy")
    made = assistant.call(
        "request_secret", prompts=[{"text": "Password"}], to=f"file:{tmp_path}/password"
    )
    waits = [
        assistant.begin("wait_for_submission", code=made["code"], seconds=900) for _ in range(3)
    ]
    refused = next(each for each in as_completed(waits, PATIENCE))
    assert "too many calls" in refused.result().structured_content["error"]["message"]
    for each in waits:
        each.cancel()


def test_a_wait_can_be_cancelled(connect: Any, job: Job, tmp_path: Path) -> None:
    assistant = connect("legacy")
    made = assistant.call(
        "request_secret", prompts=[{"text": "Password"}], to=f"file:{tmp_path}/password"
    )
    call = assistant.begin("wait_for_submission", code=made["code"], seconds=900)
    with pytest.raises(TimeoutError):
        call.result(0.3)
    call.cancel()
    job.service.submitter().submit(made["link"], {"Password": SECRET})
    assert assistant.call("wait_for_submission", code=made["code"], seconds=0)["submissions"] == 1
