"""The states of a row, what may follow what, and which step is due when.

Pure: the engine carries the steps out.

Times are microseconds since 1970, by the database's clock. A row's state stands in the database in
plain text; all else that is known of it is a `Progress`, sealed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, Final, Literal, NamedTuple

MINUTE: Final = 60_000_000
"""A minute in microseconds."""
HOUR: Final = 60 * MINUTE


class State(StrEnum):
    """What has become of a row."""

    NEW = "new"
    """Nothing is out: its share or request is to be created."""
    SENDING = "sending"
    """It exists at the service; its link is not delivered yet."""
    WAITING = "waiting"
    """The link is out, and nobody has used it."""
    ENDING = "ending"
    """What is out is being ended, because somebody cancels or reissues the row."""
    DONE = "done"
    EXPIRED = "expired"
    """Its time is up, and nobody is known to have used the link."""
    CANCELLED = "cancelled"
    FAILED = "failed"
    """The last step failed, and is repeated later."""
    BLOCKED = "blocked"
    """It is not known what became of the last step, or only a person can decide what comes next."""


class Event(StrEnum):
    """What happens to a row."""

    CREATED = "created"
    ADOPTED = "adopted"
    """The service already has it, and the database did not know."""
    DELIVERED = "delivered"
    SETTLED = "settled"
    """Delivered, and nothing else is to be done."""
    USED = "used"
    """The submission is stored, or the share was opened."""
    EXPIRED = "expired"
    FAILED = "failed"
    BLOCKED = "blocked"
    RECOVERED = "recovered"
    """A step succeeded again, and the row stays where it was before it failed."""
    WITHDRAWN = "withdrawn"
    """Somebody cancels or reissues it."""
    ENDED = "ended"
    RENEWED = "renewed"
    """A new generation begins."""


_LIVE: Final = (State.NEW, State.SENDING, State.WAITING, State.ENDING)
"""The states in which there is something to do."""
_TROUBLED: Final = (State.FAILED, State.BLOCKED)
_OVER: Final = (State.DONE, State.EXPIRED, State.CANCELLED)

TRANSITIONS: Final[Mapping[tuple[State, Event], State]] = {
    (State.NEW, Event.CREATED): State.SENDING,
    **{
        (state, Event.ADOPTED): State.WAITING
        for state in (State.NEW, State.SENDING, State.WAITING, *_OVER)
    },
    (State.SENDING, Event.DELIVERED): State.WAITING,
    (State.SENDING, Event.SETTLED): State.DONE,
    (State.SENDING, Event.EXPIRED): State.EXPIRED,
    (State.WAITING, Event.USED): State.DONE,
    (State.WAITING, Event.EXPIRED): State.EXPIRED,
    (State.ENDING, Event.ENDED): State.CANCELLED,
    (State.ENDING, Event.RENEWED): State.NEW,
    (State.EXPIRED, Event.RENEWED): State.NEW,
    **{(state, Event.RENEWED): State.NEW for state in (State.DONE, State.CANCELLED)},
    (State.DONE, Event.WITHDRAWN): State.ENDING,
    **{(state, Event.WITHDRAWN): State.ENDING for state in (*_LIVE, *_TROUBLED)},
    **{(state, Event.FAILED): State.FAILED for state in (*_LIVE, *_TROUBLED)},
    **{(state, Event.BLOCKED): State.BLOCKED for state in (*_LIVE, *_TROUBLED)},
}
"""What follows: every pair that is not here is impossible.

A troubled row goes on from its phase, see `move`.
"""


class ImpossibleEventError(Exception):
    """An event that cannot happen to a row in its state: a bug of ours."""


Wish = Literal["", "cancel", "reissue"]
"""What somebody asked for that is not carried out yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What is known of a row beside its state."""

    digest: str = ""
    """What identifies the content that is out; empty before something is."""
    short_code: str = ""
    public_key: str = ""
    """The request's public key, base64url."""
    key_id: str = ""
    """The API key that created it."""
    seed: str = field(default="", repr=False)
    """The seed of the request's key, base64url, if this credential does not derive it."""
    created_at: int | None = None
    expires_at: int | None = None
    """When the link stops working; None for never, or if the service did not say."""
    is_expiry_unknown: bool = False
    """Whether the service did not say when the link stops working, nor that it does not."""
    delivered_at: int | None = None
    touched_at: int | None = None
    """When the recipient last got a message, or else when the link was there to be used."""
    looked_at: int | None = None
    """When the service was last asked whether the link was used."""
    is_unopened: bool | None = None
    """Whether a share was unopened at that time; None: the service does not say."""
    reminders: int = 0
    """How many moments for a reminder have passed; the reminders of some may have been left out."""
    reminded: int = 0
    """How many reminders were sent."""
    manual: int = 0
    """How many of them somebody asked for."""
    submissions: int = 0
    """How many submissions the service has."""
    collected: int = 0
    """How many of them are stored."""
    used_at: int | None = None
    """When its link was used: the time of the first submission, or of the look that found the share
    opened.
    """
    reissued: int = 0
    """How many generations were made because a share expired unopened."""
    is_asked_for: bool = False
    """Whether somebody asked for this generation: it is made and delivered even if the file no
    longer has the row.
    """
    unclear: Sequence[str] = ()
    """The recipients whose message may not have arrived, until a person decides or the link is
    used.
    """
    wish: Wish = ""
    outcome: str = ""
    """What it came to, in a word: `collected`, `delivered`, `opened`, `unopened`, `unknown`, `no
    submission`.
    """
    problem: str = ""
    """What went wrong last."""
    remedy: str = ""
    exit_code: int = 0
    """The exit code of the problem; 0 for none."""
    attempts: int = 0
    """How often in a row the same step has failed."""

    def to_members(self) -> dict[str, Any]:
        """Return it as JSON members."""
        return {name: getattr(self, name) for name in _MEMBERS}

    @staticmethod
    def load(members: Mapping[str, Any]) -> Progress:
        """Restore it. Members of a later version are ignored, missing ones have their defaults."""
        values = {name: members[name] for name in _MEMBERS if name in members}
        return Progress(**{**values, "unclear": tuple(values.get("unclear", ()))})

    def next_generation(self, *, is_asked_for: bool = False) -> Progress:
        """Return the progress of a row whose next share or request is to be made."""
        return Progress(reissued=self.reissued, is_asked_for=is_asked_for)


_MEMBERS: Final = tuple(each.name for each in fields(Progress))


def get_phase(progress: Progress) -> State:
    """Return the state that a row is in apart from its troubles."""
    if progress.wish:
        return State.ENDING
    if not progress.short_code:
        return State.NEW
    return State.SENDING if progress.delivered_at is None else State.WAITING


def move(state: State, progress: Progress, event: Event) -> State:
    """Return the state after an event. Raises ImpossibleEventError."""
    if event is Event.RECOVERED:
        if state not in _TROUBLED:
            return state
        return State.BLOCKED if progress.unclear else get_phase(progress)
    after = TRANSITIONS.get((state, event))
    if after is None and state in _TROUBLED:
        after = TRANSITIONS.get((get_phase(progress), event))
    if after is None:
        raise ImpossibleEventError(f"{event} cannot happen to a row that is {state}")
    return after


def is_over(state: State) -> bool:
    """Return whether nothing is left to be done, unless somebody asks for it."""
    return state in _OVER


def is_troubled(state: State) -> bool:
    """Return whether somebody should look at it."""
    return state in _TROUBLED


class Schedule(NamedTuple):
    """When something is due, as the file has it. Durations in microseconds."""

    remind_after: Sequence[int] = ()
    """Since the link was delivered."""
    remind_before_expiry: int | None = None
    watches: bool = True
    """Whether it matters what becomes of the link: not for a share that nobody reminds or
    reissues.
    """
    reissues: int = 0
    """How many times a share that expired unopened is made anew."""

    def list_reminders(self, progress: Progress) -> list[int]:
        """Return the moments for reminders, in order; none at or after the expiry."""
        if progress.delivered_at is None:
            return []
        moments = {progress.delivered_at + after for after in self.remind_after}
        if self.remind_before_expiry is not None and progress.expires_at is not None:
            moments.add(progress.expires_at - self.remind_before_expiry)
        end = progress.expires_at
        return sorted(
            each for each in moments if each > progress.delivered_at and (end is None or each < end)
        )


class Step(StrEnum):
    """What is done with a row next."""

    CREATE = "create"
    DELIVER = "deliver"
    """Send the messages that are left."""
    POLL = "poll"
    """Ask the service whether the link was used, and store what came."""
    REMIND = "remind"
    """The same, and then remind if it was not."""
    END = "end"
    """End what is out, because somebody asked for it."""
    REISSUE = "reissue"
    REST = "rest"


class Due(NamedTuple):
    """A step, and the time it is due; None for never."""

    step: Step
    at: int | None


def find_next(
    state: State, progress: Progress, schedule: Schedule, interval: int, *, is_gone: bool = False
) -> Due:
    """Return the next step of a row, and when it is due.

    `interval` is the time between two looks in microseconds, as `choose_interval` returns it. With
    `is_gone`, the file no longer has the row: then only what somebody asked for is done.
    """
    due = _find_next(state, progress, schedule, interval)
    return Due(Step.REST, None) if is_gone and not _is_asked_for(due.step, progress) else due


def _is_asked_for(step: Step, progress: Progress) -> bool:
    return step is Step.END or (progress.is_asked_for and step in (Step.CREATE, Step.DELIVER))


def _find_next(state: State, progress: Progress, schedule: Schedule, interval: int) -> Due:
    if (
        state is State.EXPIRED
        and progress.outcome == "unopened"
        and progress.reissued < schedule.reissues
    ):
        return Due(Step.REISSUE, 0)
    if is_over(state):
        return Due(Step.REST, None)
    phase = get_phase(progress)
    if phase is not State.WAITING:
        step = {State.NEW: Step.CREATE, State.SENDING: Step.DELIVER, State.ENDING: Step.END}[phase]
        return Due(step, 0)
    moments = schedule.list_reminders(progress)[progress.reminders :]
    look_at = (progress.looked_at or progress.delivered_at or 0) + interval
    if progress.expires_at is not None:
        look_at = min(look_at, max(progress.expires_at, (progress.looked_at or 0) + MINUTE))
    if moments and moments[0] <= look_at:
        return Due(Step.REMIND, moments[0])
    return Due(Step.POLL, look_at)


def skip_reminders(progress: Progress, schedule: Schedule, now: int) -> Progress:
    """Return the progress with all moments for reminders counted that are over.

    After a pause only one is sent.
    """
    passed = sum(moment <= now for moment in schedule.list_reminders(progress))
    return replace(progress, reminders=max(progress.reminders, passed))


FIRST_INTERVAL: Final = MINUTE
LONGEST_INTERVAL: Final = HOUR


def choose_interval(progress: Progress, now: int, waiting: int, per_minute: float) -> int:
    """Return the time until the next look at a row, in microseconds.

    A twentieth of the time since its recipient last got a message, within bounds; and so long that
    `waiting` rows together take at most half of the rate `per_minute`.
    """
    quiet = 0 if progress.touched_at is None else now - progress.touched_at
    pace = int(waiting * MINUTE / (per_minute / 2))
    return max(FIRST_INTERVAL, min(LONGEST_INTERVAL, quiet // 20), pace)
