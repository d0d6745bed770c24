"""Every verb cancelled at each look of its thread: what is left is what SIGKILL leaves, and is
finished as that is.

The lists of what SIGKILL leaves: `tests/cli/kill_states/`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from cli.kills.cancelling import Canceller, cancel_at, list_looks
from cli.kills.collecting import Sweep as CollectSweep
from cli.kills.delivering import Delivering, Reminding
from cli.kills.every_step import COMMITTED, PLACES, REQUESTS, SHARES, UNREADABLE, kill_everywhere
from cli.kills.expiring import Expiring, ExpiringByName
from cli.kills.requesting import Asking
from cli.outside import State
from cli.reached import NOTHING, list_states
from cli.sweep import Sweep
from sealpipe.errors import NotFoundError
from sealpipe_rehearsal.running_service import RunningService
from support.killing import KILLED, InProcess
from support.storing import an_hour_later, asked_at_once


@pytest.fixture(autouse=True)
def cancelled_instead_of_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """In all sweeps, the subclasses of `InProcess` included."""
    monkeypatch.setattr(InProcess, "steps", list_looks)
    monkeypatch.setattr(InProcess, "killing", cancel_at)


TIDIED = (
    r"(, )?GET [^\s,]+( \(\d+ times\))?",
    r", then message (\d+) sending, then message \1 failed",
    r", then (\S+) storing, then \1 not stored",
    r", then sending, then settled as not sent",
    r"<id>.jsonl: kind$",
)
"""Reads, which change nothing; and what a thread settles that has announced a change and does not
begin it, or removes because there is nothing in it.
"""


def tidy(state: State) -> State:
    """A state without what is tidied up."""
    lines = list(state)
    for pattern in TIDIED:
        lines = [re.sub(pattern, "", line) for line in lines]
    return tuple(sorted(line for line in lines if line not in ("asked ", "disk state/requests/")))


def cancel_everywhere(title: str, sweep: Any, place: Path, least: int) -> list[str]:
    """Cancel at each look, of which there are more than `least`: every promise is kept. Return the
    states that are left and that no kill leaves.
    """
    found = kill_everywhere(sweep.kill_at, sweep.points(place / "undisturbed"), place)
    assert len(found) > least
    listed = {tidy(state) for state in list_states(title)}
    states = {each.state or NOTHING for each in found}
    return ["\n".join(state) for state in states if tidy(state) not in listed]


@pytest.mark.parametrize("kind", SHARES)
@pytest.mark.parametrize("resuming", [False, True], ids=["share", "resume"])
def test_a_share(service: RunningService, tmp_path: Path, kind: str, *, resuming: bool) -> None:
    job, words = SHARES[kind]
    sweep = Sweep(service, words, resuming=resuming, job=job, first=COMMITTED)
    title = f"{'resume' if resuming else 'share'}, {kind}"
    assert cancel_everywhere(title, sweep, tmp_path, 1) == []


@pytest.mark.parametrize("key", REQUESTS)
def test_a_request(service: RunningService, tmp_path: Path, key: str) -> None:
    job, words = REQUESTS[key]
    assert cancel_everywhere(f"request, {key}", Asking(service, words, job), tmp_path, 2) == []


@pytest.mark.parametrize(
    "to_file", [False, True], ids=["the link to a receiver", "the link to a file"]
)
def test_a_delivery(service: RunningService, tmp_path: Path, *, to_file: bool) -> None:
    title = f"delivery, the link to a {'file' if to_file else 'receiver'}"
    assert cancel_everywhere(title, Delivering(service, to_file, InProcess), tmp_path, 6) == []


def test_a_reminder(service: RunningService, tmp_path: Path) -> None:
    assert cancel_everywhere("reminder", Reminding(service, InProcess), tmp_path, 5) == []


@pytest.mark.parametrize("kind", ["two sinks", "folders", UNREADABLE])
def test_a_collection(service: RunningService, tmp_path: Path, kind: str) -> None:
    with ExitStack() as stack:
        sweep = CollectSweep(
            service, partial(PLACES[kind], stack), job=InProcess, rotten=int(kind == "two sinks")
        )
        assert cancel_everywhere(f"collect, {kind}", sweep, tmp_path, 8) == []


@pytest.mark.parametrize(
    ("title", "sweep"), [("expire", Expiring), ("expire, several by their name", ExpiringByName)]
)
def test_the_end_of_a_request(
    service: RunningService, tmp_path: Path, title: str, sweep: Callable[[RunningService], Any]
) -> None:
    assert cancel_everywhere(title, sweep(service), tmp_path, 6) == []


def test_a_purge(service: RunningService, tmp_path: Path) -> None:
    """Two DELETEs at most, the one that expires and the one that was asked for; the ciphertext is
    kept.
    """
    for number in count(1):
        job = InProcess(tmp_path / str(number), service)
        request = asked_at_once(job)
        given = request.answer().code
        words = ("requests", "purge", "--confirm", request.code, "--", request.code)
        first = job.run(*words, under=Canceller(number))
        codes = [first.code]
        if first.code == KILLED:
            codes.append(job.run(*words).code)
        if codes[-1] == 9:  # a DELETE may be on its way
            an_hour_later(job)
            codes.append(job.run(*words).code)
        assert codes[-1] == 0, f"look {number}: {codes}"
        lines = [
            json.loads(line)
            for path in job.state.rglob("*.jsonl")
            for line in path.read_text().splitlines()
        ]
        assert [line["submission"]["short_code"] for line in lines if "submission" in line] == [
            given
        ]
        assert request.deletes() == 2
        with pytest.raises(NotFoundError):
            request.submissions()
        if first.code != KILLED:
            break
    assert number > 8


@pytest.mark.parametrize("verb", ["share", "tool"])
def test_one_call_is_made_once_or_not_at_all(
    service: RunningService, tmp_path: Path, verb: str
) -> None:
    """Ending a share, and calling a tool: there is no step after it that a cancel could reach."""
    for number in count(1):
        job = InProcess(tmp_path / str(number), service)
        code = job.share("--output", "json").json["short_code"]
        words = {"share": ("shares", "expire", code), "tool": ("tools", "call", "share_stats")}[
            verb
        ]
        first = job.run(*words, under=Canceller(number))
        if first.code != KILLED:
            break
        done = [each for each in service.seen() if each.method == "DELETE" and code in each.target]
        assert (done, job.live_shares()) == ([], [code])
    assert first.code == 0
    assert number > 1
