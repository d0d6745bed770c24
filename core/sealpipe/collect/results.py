"""The result of collecting, for each request, and the progress on the way to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from sealpipe.api.responses import escape_text
from sealpipe.cancellation import current
from sealpipe.errors import (
    NoSubmissionError,
    PendingError,
    SealpipeError,
    UnreadableSubmissionError,
)
from sealpipe.expire.request import EndedRequest
from sealpipe.secret import Secret
from sealpipe.wire.fields import Field

Status = Literal["collected", "pending", "expired", "failed"]
Identity = tuple[str | None, str | None]
"""A submission's short code and its ciphertext."""


@dataclass(frozen=True, slots=True)
class OpenedSubmission:
    """A decrypted submission. The sender is not authenticated: anyone with the link can submit.

    `fields` are as submitted, labels included; each value is a `Secret`. `marker` identifies the
    submission in sinks and folders: a plain name, the same on every machine.
    """

    short_code: str | None
    created_at: datetime | None
    fields: tuple[Field[Secret], ...] = field(repr=False)
    marker: str


@dataclass(frozen=True, slots=True)
class UnreadableSubmission:
    """A submission that cannot be decrypted, or does not match the targets; `reason` says which."""

    short_code: str | None
    created_at: datetime | None
    reason: str


class StoredValues(NamedTuple):
    """A submission in its target.

    With `already`, it was stored before; `known` is False if that cannot be read.
    """

    submission: str
    target: str
    keys: tuple[str, ...]
    already: bool
    known: bool


class PlannedWrite(NamedTuple):
    """What `--dry-run` would write where, in the sink's words."""

    submission: str
    target: str
    keys: tuple[str, ...]
    words: str


@dataclass(slots=True)
class CollectResult:
    """What was collected from a request.

    `submissions` are those that `pick` chose; `count` is the number of all.

    `status` is `pending` or `expired` if there is no submission, `failed` if `error` says why.
    `failures` are those of sinks: nothing is lost, and a rerun stores what is missing. `late`
    submissions came while the request ended, and are kept. `kept_in` is the file with the
    ciphertext of what could not be decrypted or stored, None without a folder.
    """

    short_code: str
    status: Status
    count: int = 0
    submissions: tuple[OpenedSubmission, ...] = field(default=(), repr=False)
    unreadable: tuple[UnreadableSubmission, ...] = ()
    skipped: int = 0
    stored: tuple[StoredValues, ...] = ()
    planned: tuple[PlannedWrite, ...] = ()
    failures: tuple[SealpipeError, ...] = ()
    late: int = 0
    ended: EndedRequest | None = None
    kept_in: Path | None = None
    warnings: tuple[str, ...] = ()
    error: SealpipeError | None = None
    """Why it failed, if `status` is `failed`; else why the request could not be expired."""
    pick: str = "only"
    """The rule that picked the submissions."""
    seen: frozenset[Identity] = field(default=frozenset(), repr=False)
    """The identities of all submissions of the request."""

    def problem(self) -> SealpipeError | None:
        """Return the one error that represents all problems; None if there is none."""
        # If it failed, unreadable submissions are not the reason.
        return self.error if self.status == "failed" else choose_worst_error(self.problems())

    def problems(self) -> list[SealpipeError]:
        """Return all problems."""
        problems = [
            self.error,
            *self.failures,
            self._make_unreadable_error(),
            self._make_no_submission_error(),
        ]
        return [error for error in problems if error is not None]

    def _make_unreadable_error(self) -> UnreadableSubmissionError | None:
        if not self.unreadable:
            return None
        reasons = "; ".join(dict.fromkeys(each.reason for each in self.unreadable[:5]))
        return UnreadableSubmissionError(
            (
                f"{len(self.unreadable)} of {self.count} submissions to {self.short_code} "
                f"could not be used: {reasons}"
            ),
            short_code=self.short_code,
        )

    def _make_no_submission_error(self) -> SealpipeError | None:
        were = "submission was" if self.skipped == 1 else "submissions were"
        skipped = f"; {self.skipped} {were} not end-to-end encrypted" if self.skipped else ""
        problem = "there is no submission"
        if self.count > len(self.unreadable):  # there are submissions, but not the requested one
            problem = describe_no_match(self.count, self.pick)
        elif self.unreadable:
            problem = "there is no usable submission"
        if self.status == "pending":
            return PendingError(
                f"{self.short_code}: {problem} yet{skipped}", short_code=self.short_code
            )
        if self.status == "expired" and not self.unreadable:
            return NoSubmissionError(
                f"{self.short_code} has expired, and {problem}{skipped}", short_code=self.short_code
            )
        return None


def describe_no_match(count: int, rule: str) -> str:
    """Return the text for a request that has submissions, but not the one that `pick` names."""
    noun = f"none of its {count} submissions is" if count > 1 else "its only submission is not"
    return f"{noun} {escape_text(rule, 60)}"


_RANK = (1, 11, 14, 13)
"""Exit codes that come first if there are several; 15 comes last."""


def choose_worst_error(errors: Sequence[SealpipeError | None]) -> SealpipeError | None:
    """Return the error that represents several; None if there is none."""

    def get_rank(error: SealpipeError) -> int:
        code = error.exit_code
        return (
            _RANK.index(code) if code in _RANK else len(_RANK) + (code in (15, 16)) + (code == 15)
        )

    return min((error for error in errors if error is not None), key=get_rank, default=None)


Event = Literal["waiting", "trouble", "answered", "stored", "already", "not stored", "ended"]


class Progress(NamedTuple):
    """The current state.

    `waiting` requests have no submission yet; `left` and `next_look` are in seconds.

    `event`: `waiting`, `trouble` (a poll failed and is repeated; `detail` says why), `answered`,
    `stored`, `already` (stored before), `not stored`, `ended` (`detail`: the outcome).
    """

    event: Event
    short_code: str = ""
    waiting: int = 0
    left: float = 0.0
    next_look: float = 0.0
    detail: str = ""


OnProgress = Callable[[Progress], object]


class CallbackError(Exception):
    """An exception of a callback: it ends the call, whatever its type."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class ProgressReporter:
    """Reports progress to the caller's listener, if there is one."""

    def __init__(self, listener: OnProgress | None) -> None:
        self._listener = listener

    def __call__(self, progress: Progress) -> None:
        """Call the listener where the caller is. Raises CallbackError, and CancelledCallError."""
        if self._listener is not None:
            try:
                current().notify(partial(self._listener, progress))
            except Exception as error:  # noqa: BLE001 - the caller's, of any kind
                raise CallbackError(error) from None
