"""When a step that failed is tried again.

A run does not make the same call in vain for every row: when the service refuses or does not answer
at all, they wait.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import Final

from sealpipe.batch.steps.states import HOUR, MINUTE, Step
from sealpipe.errors import (
    AuthenticationError,
    ConnectError,
    OutcomeUnknownError,
    PermissionDeniedError,
    RateLimitError,
    RetriesExhaustedError,
    SealpipeError,
)

_COMMON: Final = (
    AuthenticationError,
    ConnectError,
    OutcomeUnknownError,
    PermissionDeniedError,
    RateLimitError,
    RetriesExhaustedError,
)
"""Errors that the next row would probably get, too."""
FAILURES: Final = 3
"""So many rows in a row, and the others wait."""
POSTPONEMENT: Final = 5 * MINUTE
"""For how long they wait, in microseconds."""


class Breaker:
    """Counts rows that fail one after another, for each step.

    A key that may not create may still look.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failures: Counter[Step] = Counter()
        self.reason: SealpipeError | None = None
        """The last error, if rows were left for later."""

    def is_open(self, step: Step) -> bool:
        """Return whether this step is not tried any more in this run."""
        return self._failures[step] >= FAILURES

    def note_success(self, step: Step) -> None:
        """Count a step that the service carried out."""
        with self._lock:
            self._failures[step] = 0

    def note_failure(self, step: Step, error: Exception) -> None:
        """Count a step that failed; an error of the row alone does not count."""
        if not isinstance(error, _COMMON):
            return
        with self._lock:
            self._failures[step] += FAILURES if isinstance(error, AuthenticationError) else 1
            if self._failures[step] >= FAILURES:
                self.reason = error


FIRST_RETRY: Final = MINUTE
LONGEST_RETRY: Final = HOUR


def choose_retry(attempts: int) -> int:
    """Return the time until a failed step is repeated, in microseconds.

    It doubles up to an hour.
    """
    return min(LONGEST_RETRY, FIRST_RETRY << min(attempts - 1, 10))
