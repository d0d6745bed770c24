"""A token from a login: made when it is first needed, and again before it expires."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from sealpipe.plugin import Secret

RENEW_EARLY: Final = 30.0
"""Seconds before its end that a token is replaced; half its lifetime, if that is shorter."""


class LoginToken:
    """The token that all threads of a store share. `log_in` returns one and its lifetime in seconds."""

    def __init__(self, log_in: Callable[[], tuple[Secret, float]]) -> None:
        self._log_in = log_in
        self._lock = threading.Lock()
        self._renew_at = 0.0
        self.current: Secret | None = None
        """The token of the last login, if there was one."""

    def get(self) -> Secret:
        """Return a valid token. Raises what `log_in` raises."""
        with self._lock:  # one login, however many threads need it
            if self.current is None or time.monotonic() >= self._renew_at:
                token, seconds = self._log_in()
                self._renew_at = time.monotonic() + seconds - min(RENEW_EARLY, seconds / 2)
                self.current = token
            return self.current
