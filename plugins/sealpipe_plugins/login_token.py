"""A token from a login: made when it is first needed, and again before it expires.

Requests that bear it.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from sealpipe.plugin import Secret
from sealpipe_plugins.http_api import Endpoint
from sealpipe_plugins.http_reply import Reply

RENEW_EARLY: Final = 30.0
"""Seconds before its end that a token is replaced; half its lifetime, if that is shorter."""


class LoginToken:
    """The token that all threads of a store share.

    `log_in` returns one and its lifetime in seconds.
    """

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


def send_with_token(
    endpoint: Endpoint,
    token: Secret,
    method: str,
    path: str,
    params: Mapping[str, str] | None = None,
    members: Mapping[str, Any] | None = None,
    *,
    writes: bool = False,
) -> Reply:
    """Send one request, with JSON if `members` are given.

    `writes` is True if it must not be repeated.
    """
    return endpoint.request(
        method,
        f"{path}?{urlencode(params)}" if params else path,
        None if members is None else json.dumps(members).encode(),
        writes=writes,
        headers={"authorization": Secret(f"Bearer {token.reveal()}")},
    )
