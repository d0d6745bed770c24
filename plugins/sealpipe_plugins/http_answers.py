"""What a system's HTTP interface answered, and what it means. Nothing of an answer is ever put into an error."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final, NamedTuple

from sealpipe.plugin import (
    AccessDeniedError,
    BackendAuthError,
    NotConfiguredError,
    PluginError,
    SecretNotFoundError,
    UnavailableError,
    UnknownOutcomeError,
)

LOOK: Final = "look there before it is sent again"
"""What to do where nobody knows whether a message was taken."""


class Reply(NamedTuple):
    """An answer of `system`. `wrote` tells that it answers something that is not to happen twice."""

    system: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    wrote: bool

    @property
    def json(self) -> Any:
        """What its JSON says; None where it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    def member(self, name: str) -> Any:
        """A member of its JSON object; None where there is none."""
        found = self.json
        return found.get(name) if isinstance(found, dict) else None

    @property
    def retry_after(self) -> float | None:
        """Seconds to wait, as the answer asks: digits or a date."""
        asked = self.headers.get("retry-after", "")
        if re.fullmatch(r"[0-9]{1,9}", asked):
            return float(asked)
        try:
            return max(0.0, parsedate_to_datetime(asked).timestamp() - time.time())
        except (ValueError, OverflowError):
            return None


Refusals = Mapping[int, tuple[type[PluginError], str, str]]
"""What a status means: kind, reason and remedy."""

_USUAL: Final[Refusals] = {
    401: (BackendAuthError, "refused the token", "check that it is whole, not expired, and this system's"),
    403: (AccessDeniedError, "does not let this token do that", "give it the permission that the documentation names"),
    404: (
        SecretNotFoundError,
        "has no such thing, or hides it from this token",
        "check the name, and what the token may see",
    ),
    410: (SecretNotFoundError, "has it no more", "check the name"),
    413: (PluginError, "takes no message as long as that", "shorten it"),
}


def require(reply: Reply, refusals: Refusals | None = None) -> Reply:
    """The answer, where it is one of success. Raises what its status means, `refusals` before what is usual."""
    status, system = reply.status, reply.system
    if 200 <= status < 300:
        return reply
    if status in (refusals or {}):
        kind, why, remedy = (refusals or {})[status]
        raise kind(f"{system} {why} ({status})", remedy=remedy)
    if status in (429, 503):
        raise UnavailableError(f"{system} asks to come back later ({status})", retry_after=reply.retry_after)
    if status >= 500 or status == 408:
        # A gateway answers so, too, where the system behind it has done its work.
        raise _failed(reply)
    if 300 <= status < 400:
        raise NotConfiguredError(
            f"{system} answered with a redirect ({status}), which is never followed",
            remedy="set the address that it has now",
        )
    kind, why, remedy = _USUAL.get(status, (PluginError, "refused the message", ""))
    raise kind(f"{system} {why} ({status})", remedy=remedy)


def _failed(reply: Reply) -> PluginError:
    if reply.wrote:
        return UnknownOutcomeError(f"{reply.system} failed while it had the message ({reply.status})", remedy=LOOK)
    return UnavailableError(f"{reply.system} failed ({reply.status})")
