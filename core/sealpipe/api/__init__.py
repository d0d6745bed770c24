"""What can be asked of the service, as values: one call, and what can come back of it (specification: Endpoints).

No network here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

from sealpipe.errors import UsageError

T = TypeVar("T")

RESPONSE_LIMIT = 1024 * 1024
"""Bytes that an answer's body may have (submissions have a limit of their own)."""


class Resend(Enum):
    """Whether a call whose outcome is unclear may be sent again."""

    READ = "read"
    """It changes nothing: always."""
    KEYED = "keyed"
    """It carries an idempotency key: the same bytes under the same key, always."""
    REPEATABLE = "repeatable"
    """Doing it twice ends in the same state (expiring a share)."""
    NEVER = "never"
    """Doing it twice destroys something (deleting a request)."""


@dataclass(frozen=True, slots=True)
class Response:
    """What the service answered: status, headers in lower case, the whole body.

    `flaw` says why the body cannot be used, and then there is none: too long, or encoded.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    flaw: str = ""


class Failure(NamedTuple):
    """No whole answer. `sent` is False only where provably no byte of the request left.

    `retry_after` (seconds) tells that it was held back: the service had asked the whole client to wait.
    """

    sent: bool
    detail: str
    retry_after: float | None = None


def is_success(response: Response) -> bool:
    """Whether the service says that it did what was asked."""
    return 200 <= response.status < 300


@dataclass(frozen=True, slots=True, eq=False)
class Operation(Generic[T]):
    """One call. `path` is relative to the base URL, each short code one encoded segment.

    `body` is sent byte for byte. `decode` reads an answer that `is_settled` the matter, and raises ProtocolError
    where it breaks the protocol; every other answer is a refusal. `is_complete`, where an answer may go on after all
    that matters, is given the events that came since it was asked last, and tells whether that is there.
    """

    name: str
    method: str
    path: str
    resend: Resend
    decode: Callable[[Response], T] = field(repr=False)
    body: bytes | bytearray | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict)
    limit: int = RESPONSE_LIMIT
    is_settled: Callable[[Response], bool] = field(default=is_success, repr=False)
    is_complete: Callable[[Response], bool] | None = field(default=None, repr=False)
    own_connection: bool = False
    """It travels on a fresh connection that nothing else uses: none that the other side may just be closing."""

    @property
    def scope(self) -> str | None:
        """The scope that the key needs (specification: Scopes; gaps: newer endpoints); None where there is no one."""
        resource, *rest = self.path.removeprefix("/").split("/")
        if rest[1:] == ["access-log"]:
            return "audit:read"
        reads = self.method == "GET"
        return f"{resource}:{'read' if reads else 'write'}" if resource in ("shares", "requests", "stats") else None


def encode_members(members: Mapping[str, object]) -> bytes:
    """The members that are not None, as a browser's JSON.stringify writes them. UsageError for half a character."""
    present = {name: value for name, value in members.items() if value is not None}
    try:
        return json.dumps(present, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError:
        pass
    raise UsageError(
        "a title, description or other text in clear contains a lone surrogate",
        remedy="give it as UTF-8 text",
    )
