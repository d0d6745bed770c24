"""What collecting ends with, for each request; and what it tells on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from sealpipe.api.refusals import escape_text
from sealpipe.errors import NoSubmissionError, PendingError, SealpipeError, UnreadableSubmissionError
from sealpipe.flows import Flow, Notify
from sealpipe.wire.fields import Field

if TYPE_CHECKING:
    from sealpipe.flows.request.expire import EndedRequest


Status = Literal["collected", "pending", "expired", "failed"]
Identity = tuple[str | None, str | None]
"""A submission's short code and its ciphertext."""


@dataclass(frozen=True, slots=True)
class OpenedSubmission:
    """A submission that was opened. Anybody who had the link may have sent it: the sender is not authenticated.

    `fields` are as they were sent, labels and all; each value is a `Secret`. `marker` stands for the submission in
    sinks and folders: a plain name, the same on every machine.
    """

    short_code: str | None
    created_at: datetime | None
    fields: tuple[Field, ...] = field(repr=False)
    marker: str


@dataclass(frozen=True, slots=True)
class UnreadableSubmission:
    """A submission that could not be opened, or does not answer what was asked; `reason` says which, for people."""

    short_code: str | None
    created_at: datetime | None
    reason: str


class StoredValues(NamedTuple):
    """A submission in its place. `already`: it was there before; `known` is False where nobody can read it back."""

    submission: str
    target: str
    keys: tuple[str, ...]
    already: bool
    known: bool


class PlannedWrite(NamedTuple):
    """What would go where (`--dry-run`), in the sink's words."""

    submission: str
    target: str
    keys: tuple[str, ...]
    words: str


@dataclass(slots=True)
class CollectResult:
    """What a request has given. `submissions` are those that `pick` chose, opened; `count` is how many there are.

    `status` is `pending` or `expired` where nobody has answered, `failed` where `error` says why nothing came of it.
    `failures` are those of sinks: nothing is lost, a rerun stores what is missing. `late` came while the request
    ended, and is kept. `kept_in` is the file with the ciphertext of what could not be opened or stored, None without
    a folder.
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
    """Why it came to nothing, where `status` is `failed`; else why the request could not be ended."""
    pick: str = "only"
    """What was to be taken."""
    seen: frozenset[Identity] = field(default=frozenset(), repr=False)
    """Every submission that was there, by what tells one from another."""

    def problem(self) -> SealpipeError | None:
        """The error that stands for all that is not as it should be; None where all is well."""
        # Where it came to nothing, what could not be opened is not the reason.
        return self.error if self.status == "failed" else choose_worst_error(self.problems())

    def problems(self) -> list[SealpipeError]:
        """All that is not as it should be."""
        found = [self.error, *self.failures, self._make_unreadable_error(), self._make_unanswered_error()]
        return [error for error in found if error is not None]

    def _make_unreadable_error(self) -> UnreadableSubmissionError | None:
        if not self.unreadable:
            return None
        reasons = "; ".join(dict.fromkeys(each.reason for each in self.unreadable[:5]))
        return UnreadableSubmissionError(
            f"{len(self.unreadable)} of {self.count} submissions to {self.short_code} could not be used: {reasons}",
            short_code=self.short_code,
        )

    def _make_unanswered_error(self) -> SealpipeError | None:
        were = "submission was" if self.skipped == 1 else "submissions were"
        skipped = f"; {self.skipped} {were} not end-to-end encrypted" if self.skipped else ""
        nobody = "there is no submission"
        if self.count > len(self.unreadable):  # there are answers, and none of them is the one that was named
            nobody = describe_no_match(self.count, self.pick)
        elif self.unreadable:
            nobody = "there is no usable submission"
        if self.status == "pending":
            return PendingError(f"{self.short_code}: {nobody} yet{skipped}", short_code=self.short_code)
        if self.status == "expired" and not self.unreadable:
            return NoSubmissionError(
                f"{self.short_code} has expired, and {nobody}{skipped}", short_code=self.short_code
            )
        return None


def describe_no_match(count: int, rule: str) -> str:
    """That a request has answers, and none of them is the one that `pick` names."""
    noun = f"none of its {count} submissions is" if count > 1 else "its only submission is not"
    return f"{noun} {escape_text(rule, 60)}"


_RANK = (1, 11, 14, 13)
"""Exit codes that come first where there are several at once (DESIGN section 3); 15 comes last."""


def choose_worst_error(errors: Sequence[SealpipeError | None]) -> SealpipeError | None:
    """The error that stands for several; None where there is none."""

    def get_rank(error: SealpipeError) -> int:
        code = error.exit_code
        return _RANK.index(code) if code in _RANK else len(_RANK) + (code in (15, 16)) + (code == 15)

    return min((error for error in errors if error is not None), key=get_rank, default=None)


Event = Literal["waiting", "trouble", "answered", "stored", "already", "not stored", "ended"]


class Progress(NamedTuple):
    """What is going on. `waiting` requests have no answer yet; `left` and `next_look` are in seconds.

    `event`: `waiting`, `trouble` (a look failed, and is repeated; `detail` says how), `answered`, `stored`,
    `already` (it was there), `not stored`, `ended` (`detail`: how).
    """

    event: Event
    short_code: str = ""
    waiting: int = 0
    left: float = 0.0
    next_look: float = 0.0
    detail: str = ""


OnProgress = Callable[[Progress], object]


class CallbackError(Exception):
    """What a callback raised: it ends the call, whatever kind of error it is."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class ProgressReporter:
    """Who is told what goes on, if anybody is."""

    def __init__(self, listener: OnProgress | None) -> None:
        self._listener = listener

    def __call__(self, progress: Progress) -> Flow[None]:
        """Call the listener. Raises CallbackError."""
        if self._listener is not None:
            try:
                yield Notify(partial(self._listener, progress))
            except Exception as error:  # noqa: BLE001 - whatever it is, it is not ours to judge
                raise CallbackError(error) from None
