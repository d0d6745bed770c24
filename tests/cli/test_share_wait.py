"""`sealpipe shares wait`: what the service tells of a share, and what it does not.

Time is moved by hand, the network is real.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sealpipe.api.account import Access, AccessLog, ShareInfo
from sealpipe.cli import shares_wait
from sealpipe.errors import NotFoundError, PendingError, UnopenedError, UsageError
from sealpipe.expire.share import EndedShare
from sealpipe.polling import LONGEST_INTERVAL, RATE
from sealpipe.share import wait
from sealpipe.share.views import Listing, find_listing, may_be_over, was_opened
from sealpipe.share.wait import Outcome, Progress, WaitJob, wait_for_share
from sealpipe.state.receipt import read_share_receipt
from sealpipe_rehearsal.people import LinkRefusedError
from sealpipe_rehearsal.running_service import RunningService
from support.hours import Hours, open_session
from support.job import Job, job
from support.terminal import Terminal

__all__ = ["job"]

HOUR = 3600.0
NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)


class Shared:
    """A share, and a wait for it in time that is moved by hand."""

    def __init__(self, job: Job, *words: str, base_url: str | None = None) -> None:
        self.job = job
        receipt = job.terminal.here / f"receipt-{len(list(job.terminal.here.glob('receipt-*')))}"
        done = job.share(*words, "--receipt", str(receipt))
        assert done.code == 0, done
        self.link = done.out.strip()
        self.known = read_share_receipt(receipt)
        self.code = self.known.short_code
        self.time = Hours(open_session(job, base_url))
        self.told: list[Progress] = []

    def open(self, passcode: str | None = None) -> None:
        self.job.service.recipient().open_link(self.link, passcode)

    def fail(self) -> None:
        with pytest.raises(LinkRefusedError):
            self.open("no-such-passcode")

    def expire(self) -> None:
        self.job.run("shares", "expire", self.code)

    def wait(self, until: Any = "opened", **options: Any) -> Outcome:
        wanted = WaitJob(
            self.code,
            until,
            HOUR,
            self.known.is_used_up_by_opening,
            self.known.created_at,
        )
        return self.time.run(
            lambda session: wait_for_share(
                session, replace(wanted, **options), self.told.append, lambda: self.time.now
            )
        )


@pytest.fixture
def logged(extended: RunningService, tmp_path: Path) -> Job:
    """A job at a service with an access log, which its key may read."""
    return Job(tmp_path, extended)


def test_a_share_that_only_opening_uses_up_was_opened_once_it_is_used_up(job: Job) -> None:
    shared = Shared(job)
    shared.time.at(40, shared.open)
    outcome = shared.wait()
    assert (outcome.opened, outcome.has_ended, outcome.problem()) == (True, True, None)
    assert shared.time.now == 45


def test_it_looks_as_gently_as_collect_and_a_last_time_when_time_is_up(job: Job) -> None:
    shared = Shared(job)
    outcome = shared.wait()
    assert (outcome.opened, outcome.has_ended) == (False, False)
    assert type(outcome.problem()) is PendingError
    looks = sorted({when for when, path in shared.time.sent if path == "/shares"})
    assert (looks[:3], looks[-1]) == ([0.0, 15.0, 30.0], HOUR)
    assert len(looks) < 80
    assert max(shared.time.waited) <= LONGEST_INTERVAL
    assert all(0 < each.next_look <= each.left for each in shared.told)


@pytest.mark.parametrize(
    "words", [("--views", "2"), ("--views", "unlimited"), ("--passcode-from", "env:HOME")]
)
def test_of_another_share_the_service_would_not_tell_so_it_is_refused(
    job: Job, words: tuple[str, ...]
) -> None:
    shared = Shared(job, *words)
    with pytest.raises(UsageError, match="would not tell"):
        shared.wait()
    assert shared.wait("ended", seconds=30.0).problem() is not None


def test_a_code_of_which_nothing_is_known_is_refused_too(job: Job) -> None:
    with pytest.raises(UsageError, match="not known to have one view and no passcode"):
        Shared(job).wait(is_used_up_by_opening=None)


def test_where_there_is_an_access_log_it_says_so_of_any_share(logged: Job) -> None:
    shared = Shared(logged, "--views", "3")
    shared.time.at(40, shared.open)
    outcome = shared.wait()
    assert (outcome.opened, outcome.has_ended) == (True, False)


def test_a_failed_passcode_is_no_view(logged: Job) -> None:
    shared = Shared(logged, "--passcode-from", "env:HOME")
    shared.time.at(20, shared.fail)
    shared.time.at(70, lambda: shared.open(shared.job.terminal.environ["HOME"]))
    assert shared.wait().opened
    assert shared.time.now == 75


def test_a_log_that_does_not_go_back_to_the_beginning_proves_nothing(logged: Job) -> None:
    shared = Shared(logged, "--views", "3")
    assert shared.wait(seconds=20.0).opened is False
    assert shared.known.created_at is not None
    before = shared.known.created_at - timedelta(days=400)
    assert shared.wait(seconds=20.0, created_at=before).opened is None


def test_a_share_that_ended_by_time_may_have_been_opened(job: Job) -> None:
    shared = Shared(job, "--expires-in", "1h")
    shared.time.at(40, lambda: job.service.advance(2 * HOUR))
    outcome = shared.wait()
    assert (outcome.opened, outcome.has_ended) == (None, True)
    assert type(outcome.problem()) is UnopenedError
    assert "does not tell" in str(outcome.problem())


def test_one_that_ends_shortly_before_its_expiry_may_have_ended_by_it(job: Job) -> None:
    shared = Shared(job, "--expires-in", "1h")
    shared.time.at(30, lambda: job.service.advance(HOUR - 60))
    shared.time.at(40, shared.open)
    assert shared.wait().opened is None


@pytest.mark.parametrize(
    ("expires_at", "known", "at", "is_over"),
    [
        (None, True, NOON, False),
        (None, True, None, False),
        (None, False, NOON, True),
        (NOON, True, None, True),
        (NOON, True, NOON - timedelta(seconds=121), False),
        (NOON, True, NOON - timedelta(seconds=120), True),
    ],
)
def test_what_is_not_known_of_the_time_may_be_the_end(
    expires_at: datetime | None,
    known: bool,  # noqa: FBT001 - a parameter of the table
    at: datetime | None,
    is_over: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    assert may_be_over(ShareInfo("code", expires_at, expiry_known=known), at) is is_over


@pytest.mark.parametrize(
    ("failed", "opened"),
    [([], False), ([True], False), ([True, False], True), ([None, True], None)],
)
def test_an_entry_of_the_log_that_does_not_say_proves_nothing(
    failed: list[bool | None],
    opened: bool | None,  # noqa: FBT001 - a parameter of the table
) -> None:
    entries = tuple(Access(NOON, None, None, None, each, None) for each in failed)
    assert was_opened(AccessLog("code", entries), NOON) is opened


def test_an_opening_between_two_requests_of_a_look_is_not_lost(
    logged: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = Shared(logged, "--passcode-from", "env:HOME")

    def find_late(*arguments: Any) -> Any:
        shared.open(shared.job.terminal.environ["HOME"])
        return find_listing(*arguments)

    monkeypatch.setattr(wait, "find_listing", find_late)
    outcome = shared.wait()
    assert (outcome.opened, outcome.has_ended) == (True, True)


def test_one_that_was_opened_before_a_delete_that_says_expired_was_opened(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = Shared(job)

    def expire_late(*_: Any) -> EndedShare:
        """What a lost DELETE that is repeated after an opening looks like."""
        shared.open()
        return EndedShare(shared.code, "expired")

    monkeypatch.setattr(wait, "expire_share", expire_late)
    assert shared.wait(seconds=20.0, expire=True).problem() is None


def test_long_lists_are_read_more_rarely(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = Shared(job)
    long = Listing(is_active=True, at=NOON, pages=40)
    monkeypatch.setattr(wait, "find_listing", lambda *_: long)
    shared.wait()
    assert min(shared.time.waited[:-1]) > 41 / RATE - 1


def test_a_share_that_somebody_expired_has_ended_and_is_not_known_to_have_been_opened(
    job: Job,
) -> None:
    shared = Shared(job)
    shared.time.at(40, shared.expire)
    outcome = shared.wait()
    assert (outcome.opened, outcome.has_ended) == (None, True)
    with pytest.raises(NotFoundError):
        shared.wait()


def test_the_end_can_be_waited_for(job: Job) -> None:
    shared = Shared(job, "--views", "2")
    shared.time.at(10, shared.open)
    shared.time.at(40, shared.open)
    outcome = shared.wait("ended")
    assert (outcome.opened, outcome.has_ended, outcome.problem()) == (None, True, None)
    assert shared.time.now == 45


def test_a_share_that_ended_before_the_wait_is_told_at_once(job: Job) -> None:
    shared = Shared(job)
    shared.open()
    assert shared.wait().problem() is None
    assert shared.time.waited == []


def test_when_time_is_up_it_can_be_expired(job: Job) -> None:
    shared = Shared(job)
    outcome = shared.wait(seconds=60.0, expire=True)
    assert (outcome.opened, outcome.has_ended, outcome.is_expired) == (False, True, True)
    assert type(outcome.problem()) is PendingError
    with pytest.raises(LinkRefusedError):
        shared.open()


def test_one_that_is_opened_at_the_last_moment_was_opened(job: Job) -> None:
    shared = Shared(job)
    shared.time.at(60, shared.open)
    assert shared.wait(seconds=60.0, expire=True).problem() is None


def test_an_outage_is_told_and_waited_out(job: Job) -> None:
    shared = Shared(job)
    shared.time.at(10, lambda: job.service.set_faults({"fault": "reset", "times": 100}))
    shared.time.at(900, job.service.set_faults)
    shared.time.at(901, shared.open)
    assert shared.wait().opened
    assert any(each.trouble for each in shared.told)


@pytest.mark.parametrize(
    ("seconds", "told"), [(5, "0:05"), (60, "1:00"), (150, "2:30"), (24 * HOUR, "24:00:00")]
)
def test_what_is_left_of_the_time_is_told(
    seconds: float, told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    shares_wait._Report("abc")(Progress(seconds, 1))
    assert capfd.readouterr().err == f"abc: waiting, {told} left\n"


def test_the_commands_codes_and_words(user: Terminal, service: RunningService) -> None:
    link = user.sealpipe("share", "text:x", "--name", "staging", "--receipt", "share.json").out
    code = json.loads((user.here / "share.json").read_text())["short_code"]
    early = user.sealpipe("shares", "wait", code, "--for", "1s")
    assert (early.code, early.out) == (15, "")
    assert f"{code} is not opened yet" in early.err
    service.recipient().open_link(link.strip())
    done = user.sealpipe("shares", "wait", "share.json")
    assert (done.code, done.out, done.err) == (0, "", f"{code} has ended, and was opened\n")
    told = user.sealpipe("shares", "wait", code, "--until", "ended", "--output", "json").json
    assert told == {
        "schema": 1,
        "short_code": code,
        "until": "ended",
        "opened": True,
        "ended": True,
    }
    unknown = user.sealpipe("shares", "wait", "no-such-code")
    assert (unknown.code, unknown.out) == (6, "")
    gone = user.sealpipe("share", "text:x", "--output", "json").json["short_code"]
    assert user.sealpipe("shares", "expire", gone).code == 0
    assert user.sealpipe("shares", "wait", gone, "--until", "ended").code == 6


def test_what_has_ended_is_listed_where_the_service_does_it(
    user: Terminal, service: RunningService
) -> None:
    codes = [
        user.sealpipe("share", "text:x", "--output", "json").json["short_code"] for _ in range(2)
    ]
    user.sealpipe("shares", "expire", codes[0])
    words = ("shares", "list", "--status", "expired", "--output", "json")
    plain = user.sealpipe(*words)
    assert plain.json["shares"] == []
    assert plain.err == "this service does not list expired shares\n"
    service.service.extended = True
    try:
        listed = user.sealpipe(*words)
        everything = user.sealpipe(*words, "--all")
    finally:
        service.service.extended = False
    for done in (listed, everything):
        (row,) = done.json["shares"]
        assert (row["short_code"], row["state"], done.err) == (codes[0], "expired", "")
