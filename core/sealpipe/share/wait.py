"""Wait until a share was opened, or has ended, as far as the service tells."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from sealpipe.api import shares
from sealpipe.api.account import ShareInfo
from sealpipe.budget import call
from sealpipe.errors import (
    NotFoundError,
    PendingError,
    Remedy,
    SealpipeError,
    UnopenedError,
    UsageError,
)
from sealpipe.expire.share import expire_share
from sealpipe.polling import TRANSIENT, choose_interval
from sealpipe.session import Session
from sealpipe.share.views import fetch_log, find_listing, judge_ended, may_be_over, was_opened

WaitedFor = Literal["opened", "ended"]


@dataclass(frozen=True, slots=True)
class WaitJob:
    """What to wait for, and for how many seconds.

    `is_used_up_by_opening` says that the share has one view and no passcode; None: not known.
    `expire` ends the share when time is up; `keep` is the folder of this machine's notes of shares
    that it expired.
    """

    short_code: str
    until: WaitedFor
    seconds: float
    is_used_up_by_opening: bool | None = None
    created_at: datetime | None = None
    expire: bool = False
    keep: Path | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """The seconds left, those until the next look, and what went wrong with the last one."""

    left: float
    next_look: float
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is known of the share at the end of a wait.

    `opened` is None if the service does not say; `is_expired` says that this wait expired it.
    """

    job: WaitJob
    opened: bool | None
    has_ended: bool
    is_expired: bool = False
    calls: int = 2
    """How many calls the last look took."""

    def is_met(self) -> bool:
        """Return whether what was waited for has come. That we ended the share is not it."""
        if self.job.until == "opened":
            return self.opened is True
        return self.has_ended and not self.is_expired

    def describe(self) -> str:
        """Say what is known, as a sentence without its subject."""
        return f"has ended, and {_OPENED[self.opened]}" if self.has_ended else _OPENED[self.opened]

    def problem(self) -> SealpipeError | None:
        """Return the error if what was waited for has not come."""
        code = self.job.short_code
        if self.is_met():
            return None
        if self.has_ended and not self.is_expired:
            return UnopenedError(f"{code} {self.describe()}", short_code=code)
        if self.is_expired:
            return PendingError(
                f"time is up: {code} was expired, and {_OPENED[self.opened]}",
                remedy="share it again",
                short_code=code,
            )
        awaited = "is still active" if self.job.until == "ended" else "is not opened yet"
        return PendingError(
            f"{code} {awaited}",
            remedy=Remedy(
                "wait for it again, or give it more time with --for",
                python="wait for it again",
            ),
            short_code=code,
        )


_OPENED = {
    True: "was opened",
    False: "was not opened",
    None: "the service does not tell whether it was opened",
}


def wait_for_share(
    session: Session,
    job: WaitJob,
    report: Callable[[Progress], object],
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Wait for a share, and return what is known of it when it has come to that, or time is up.

    Asks as gently as `collect` does; temporary errors are reported and waited out. Raises
    NotFoundError if there is no such share, UsageError if the service would not tell what is waited
    for.
    """
    session.check_clear(job.short_code)
    started = clock()
    info = call(shares.get(job.short_code), session.start_budget())
    _check_told(session, job)
    outcome = _look(session, job, info)
    while not (outcome.is_met() or outcome.has_ended):
        elapsed = clock() - started
        left = job.seconds - elapsed
        if left <= 0:
            return _expire(session, job, info) if job.expire else outcome
        delay = min(left, choose_interval(elapsed, outcome.calls))
        report(Progress(left, delay))
        session.wait(delay)
        try:
            outcome = _look(session, job, info)
        except TRANSIENT as error:
            report(Progress(left - delay, 0.0, error.message))
    return outcome


def _check_told(session: Session, job: WaitJob) -> None:
    """Raise UsageError if the service would not tell that the share was opened."""
    if job.until == "ended" or job.is_used_up_by_opening:
        return
    if fetch_log(session, job.short_code) is None:
        raise UsageError(
            f"the service would not tell that {job.short_code} was opened: this key can read no "
            "access log, and the share is not known to have one view and no passcode",
            remedy=Remedy(
                "wait --until ended; or give the receipt of a share with one view and no passcode, "
                "which `sealpipe share --receipt FILE` writes",
                python='wait with until="ended"',
            ),
        )


def _look(session: Session, job: WaitJob, info: ShareInfo) -> Outcome:
    """Ask the service once."""
    only_opening = bool(job.is_used_up_by_opening)
    opened = _read_log(session, job) if job.until == "opened" else None  # else at its end
    if opened:
        return Outcome(job, opened, has_ended=False)
    listing = find_listing(session, job.short_code)
    if listing is None:
        return Outcome(job, opened, has_ended=False)
    if listing.is_active:
        return Outcome(
            job, False if only_opening else opened, has_ended=False, calls=listing.pages + 1
        )
    used = judge_ended(
        session,
        job.short_code,
        is_over=may_be_over(info, listing.at),
        is_used_up_by_opening=only_opening,
    )
    if used is None:  # the log again: it may have been opened since
        used = _read_log(session, job)
    return Outcome(job, used, has_ended=True)


def _expire(session: Session, job: WaitJob, info: ShareInfo) -> Outcome:
    """Expire the share, since time is up; it may have been opened, or have ended, at the last
    moment.
    """
    if expire_share(session, job.short_code, job.keep).outcome == "already-expired":
        return _look(session, job, info)
    if not job.is_used_up_by_opening:
        return Outcome(job, _read_log(session, job), has_ended=True, is_expired=True)
    try:
        call(shares.get(job.short_code), session.start_budget())
    except NotFoundError:  # it was active when it was expired
        return Outcome(job, opened=False, has_ended=True, is_expired=True)
    return _look(session, job, info)  # it was used up before, and its expiry changed nothing


def _read_log(session: Session, job: WaitJob) -> bool | None:
    return was_opened(fetch_log(session, job.short_code), job.created_at)
