"""The rate at which all workers together may call the service: one row in the database, by the
database's clock.

Every call reserves its time before it is sent. Calls are spaced evenly, so no minute ever has more
than the plan's limit, and a twentieth of it is left for calls that arrive later than they were
sent. Without a known limit nothing is delayed until the first 429; from then on the spacing is
learned, as in `sealpipe.network.rate_limiter`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from math import exp
from typing import Final, NamedTuple

from sealpipe.batch.database import statements as sql
from sealpipe.batch.database.interface import Database, Transaction, check_types
from sealpipe.batch.database.records import SECOND
from sealpipe.network.rate import (
    IDLE_RESET,
    MAX_RATE,
    MAX_RETRY_AFTER,
    MIN_FIRST_RATE,
    MIN_RATE,
    SLOWDOWN,
    SPEEDUP,
)

MINUTE: Final = 60.0
USED_SHARE: Final = 0.95
"""The part of the plan's limit that is used."""
MAX_LIMIT: Final = 1_000_000
"""The highest limit that is believed, in calls per minute: more than all workers could ever
send.
"""
_COUNT_UNIT = 1000  # `recent` is stored in thousandths of a call
MAX_BLOCK: Final = 32
"""Calls that are reserved at once, at the most."""
_BLOCK_SPAN: Final = SECOND // 10
"""For how long the calls of a block last."""
_SLOT_AGE: Final = SECOND // 2
"""A reserved time that is older is given up: with that, no minute has more calls than it has
times.
"""


class Slot(NamedTuple):
    """A call that may be sent: sleep `delay` seconds first.

    `at` is the reserved time, in microseconds.
    """

    delay: float
    at: int


@dataclass(frozen=True, slots=True)
class RateState:
    """What is known of the rate. Times and `spacing` are microseconds.

    `per_minute` is the plan's limit, None if the service does not tell it. `spacing` is the learned
    time between two calls, None if nothing was learned. `recent` are the calls of the last minute:
    each counts less with every second. `seen_at` is what the clock was at the last change.
    """

    next_at: int = 0
    slowed_until: int = 0
    slowed_at: int = 0
    last_at: int = 0
    per_minute: int | None = None
    spacing: int | None = None
    recent: int = 0
    seen_at: int = 0

    @property
    def calls_per_minute(self) -> float | None:
        """How many calls a minute are allowed now; None if nothing limits them."""
        spacing = self.get_spacing()
        return MINUTE * SECOND / spacing if spacing else None

    def count_recent(self, at: int) -> float:
        """Return how many calls a minute all workers send at a time: those of the last minute, as
        `recent` counts.
        """
        return self.recent / _COUNT_UNIT * exp(-max(0, at - self.last_at) / (MINUTE * SECOND))

    def get_spacing(self) -> int:
        """Return the time between two calls: the plan's or the learned one, whichever is longer; 0
        for no limit.
        """
        planned = (
            0
            if self.per_minute is None or self.per_minute < 1
            else round(MINUTE * SECOND / (self.per_minute * USED_SHARE))
        )
        return max(planned, self.spacing or 0)


def reserve(state: RateState, now: int) -> tuple[RateState, int]:
    """Reserve the next call: the new state, and the call's time."""
    state = _follow_clock(state, now)
    learned = state.spacing
    if learned is not None:
        is_idle = now - max(state.last_at, state.slowed_until) > IDLE_RESET * SECOND
        sped_up = round(learned / SPEEDUP)
        learned = None if is_idle or sped_up < SECOND / MAX_RATE else sped_up
    state = replace(state, spacing=learned)
    at = max(now, state.next_at, state.slowed_until)
    recent = _COUNT_UNIT + round(state.count_recent(at) * _COUNT_UNIT)
    return replace(state, next_at=at + state.get_spacing(), last_at=at, recent=recent), at


def reserve_block(state: RateState, now: int, wanted: int) -> tuple[RateState, list[int]]:
    """Reserve up to `wanted` calls, as many as fit into a tenth of a second: the new state, and
    their times.
    """
    state, at = reserve(state, now)
    times = [at]
    while len(times) < wanted and times[-1] + state.get_spacing() - now <= _BLOCK_SPAN:
        state, at = reserve(state, now)
        times.append(at)
    return state, times


class Block:
    """The times that a worker has reserved and not used. It grows as long as it is used up fast."""

    def __init__(self) -> None:
        self._times: deque[int] = deque()
        self._reserved_at = 0
        self._size = 1

    def take(self, now: int) -> int | None:
        """Return the next time; None if there is none, or those that are left are too old."""
        if now < self._reserved_at:  # the clock was set back
            self._times.clear()
        while self._times and now - self._times[0] > _SLOT_AGE:
            self._times.popleft()
        return self._times.popleft() if self._times else None

    def choose_size(self, now: int) -> int:
        """Return how many to reserve next: as many as are used in about a tenth of a second."""
        age = now - self._reserved_at
        if 0 <= age < _BLOCK_SPAN:
            return min(MAX_BLOCK, self._size * 2)
        return self._size if 0 <= age < 2 * _BLOCK_SPAN else max(1, self._size // 4)

    def fill(self, now: int, times: Sequence[int]) -> int:
        """Keep what was reserved, and return the first time."""
        self._reserved_at, self._size = now, len(times)
        self._times = deque(times)
        return self._times.popleft()

    def clear(self) -> None:
        """Give up what is left."""
        self._times.clear()


def slow_down(state: RateState, now: int, sent_at: int, retry_after: float | None) -> RateState:
    """Return the state after a 429 to the call that was reserved for `sent_at`; `retry_after` is in
    seconds.
    """
    state = _follow_clock(state, now)
    wait = 0 if retry_after is None else round(min(max(retry_after, 0.0), MAX_RETRY_AFTER) * SECOND)
    slowed_until = max(state.slowed_until, now + wait)
    if sent_at <= state.slowed_at:  # sent before we slowed down: it says nothing new
        return replace(state, slowed_until=slowed_until)
    current = state.get_spacing()
    if current:
        spacing = min(round(current / SLOWDOWN), round(SECOND / MIN_RATE))
    else:
        # The calls of the last minute are about the burst: twice the rate per minute
        # (specification: Limits).
        spacing = round(SECOND / max(MIN_FIRST_RATE, state.recent / _COUNT_UNIT / 2.0 / MINUTE))
    return replace(state, slowed_until=slowed_until, slowed_at=now, spacing=max(spacing, current))


def _follow_clock(state: RateState, now: int) -> RateState:
    """Return the state by a clock that was set back since the last call; the same one by any other
    clock.
    """
    back = state.seen_at - now
    if back <= 0:
        return replace(state, seen_at=now)
    times = {
        name: getattr(state, name) - back
        for name in ("next_at", "slowed_until", "slowed_at", "last_at")
    }
    return replace(state, seen_at=now, **times)


class SharedRate:
    """The rate of one credential at one service.

    `clock` returns the database's time in microseconds.
    """

    def __init__(self, database: Database, rate_id: str, clock: Callable[[], int]) -> None:
        self._database = database
        self._id = rate_id
        self._clock = clock
        self._lock = threading.Lock()
        self._block = Block()

    def acquire(self) -> Slot:
        """Reserve the next call, for this worker alone.

        Where calls follow fast, several are reserved at once.
        """
        with self._lock:
            now = self._clock()
            at = self._block.take(now)
            if at is None:
                with self._database.transaction() as transaction:
                    state = self._read(transaction)
                    now = self._clock()
                    state, times = reserve_block(state, now, self._block.choose_size(now))
                    self._save(transaction, state)
                at = self._block.fill(now, times)
        return Slot(max(0, at - now) / SECOND, at)

    def slow_down(self, slot: Slot, retry_after: float | None) -> None:
        """Make every worker wait, after a 429 to the call of this slot; `retry_after` is in
        seconds.
        """
        with self._lock, self._database.transaction() as transaction:
            state = self._read(transaction)
            self._save(transaction, slow_down(state, self._clock(), slot.at, retry_after))
            self._block.clear()

    def set_limit(self, per_minute: int | None) -> None:
        """Set the plan's limit (capabilities: `rate_limit_rpm`); None: the service does not tell
        it.
        """
        with self._database.transaction() as transaction:
            state = self._read(transaction)
            if state.per_minute != per_minute:
                self._save(transaction, replace(state, per_minute=per_minute))

    def read(self) -> RateState:
        """Return what is known of the rate."""
        found = self._database.read(sql.PEEK_RATE, id=self._id)
        return RateState(*check_types(found[0], _KINDS)) if found else RateState()

    def _read(self, transaction: Transaction) -> RateState:
        """Read the row, and lock it until the transaction ends; make it first if it is missing."""
        found = transaction.run(sql.READ_RATE, id=self._id)
        if not found:
            transaction.run(sql.ADD_RATE, id=self._id)
            found = transaction.run(sql.READ_RATE, id=self._id)
        return RateState(*check_types(found[0], _KINDS))

    def _save(self, transaction: Transaction, state: RateState) -> None:
        transaction.run(sql.SAVE_RATE, id=self._id, **asdict(state))


_KINDS = "iiiinnii"
