"""The rate at which all workers together may call the service.

A `RateState` in a row of the database, by the database's clock.

Every call reserves its time before it is sent. Where calls follow fast, a worker reserves several
at once.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from sealpipe.api.operation import Failure
from sealpipe.batch.database import statements as sql
from sealpipe.batch.database.interface import Database, Transaction, check_types
from sealpipe.network.rate import SECOND, RateState, refuse_delay

MAX_LIMIT: Final = 1_000_000
"""The highest limit that is believed, in calls per minute: more than all workers could ever
send.
"""
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


def reserve_block(state: RateState, now: int, wanted: int) -> tuple[RateState, list[int]]:
    """Reserve up to `wanted` calls, as many as fit into a tenth of a second.

    Return the new state, and their times.
    """
    state, at = state.reserve(now)
    times = [at]
    while len(times) < wanted and times[-1] + state.get_spacing() - now <= _BLOCK_SPAN:
        state, at = state.reserve(now)
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

    def wait(self, timeout: float, sleep: Callable[[float], object]) -> int | Failure:
        """Sleep until a call may be sent, and return its reserved time.

        Its failure if that cannot be within `timeout` seconds, and then nothing is reserved.

        A 429 that any worker gets meanwhile holds for those who sleep: they reserve again.
        """
        end = time.monotonic() + timeout
        while True:
            slot = self._reserve(end - time.monotonic())
            if isinstance(slot, Failure) or slot.delay <= 0:
                return slot if isinstance(slot, Failure) else slot.at
            sleep(slot.delay)
            if self.read().slowed_until <= slot.at:
                return slot.at

    def acquire(self) -> Slot:
        """Reserve the next call, however late it is."""
        slot = self._reserve(math.inf)
        assert isinstance(slot, Slot)  # noqa: S101 - any delay is shorter
        return slot

    def _reserve(self, remaining: float) -> Slot | Failure:
        with self._lock:
            now = self._clock()
            at = self._block.take(now)
            if at is not None:
                return Slot(max(0, at - now) / SECOND, at)
            with self._database.transaction() as transaction:
                state = self._read(transaction)
                now = self._clock()
                state, times = reserve_block(state, now, self._block.choose_size(now))
                delay = max(0, times[0] - now) / SECOND
                refusal = refuse_delay(delay, remaining) if delay else None
                if refusal is not None:
                    return refusal
                self._save(transaction, state)
            return Slot(delay, self._block.fill(now, times))

    def slow_down(self, turn: int, retry_after: float | None) -> None:
        """Make every worker wait, after a 429 to the call that was reserved for `turn`.

        `retry_after` is in seconds.
        """
        with self._lock, self._database.transaction() as transaction:
            state = self._read(transaction)
            self._save(transaction, state.slow_down(self._clock(), retry_after, turn))
            self._block.clear()

    def set_limit(self, per_minute: int | None) -> None:
        """Set the plan's limit (capabilities: `rate_limit_rpm`), or None if it is not known."""
        with self._database.transaction() as transaction:
            state = self._read(transaction)
            if state.per_minute != per_minute:
                self._save(transaction, state._replace(per_minute=per_minute))

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
        transaction.run(sql.SAVE_RATE, id=self._id, **state._asdict())


_KINDS = "iiiinnii"
