"""The service's API as values: the credential, one call, and its result.

Nothing here uses the network.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

from sealpipe.errors import CredentialError, UsageError, WireError
from sealpipe.secret import Secret, as_secret, strips_frames
from sealpipe.wire import encoding

_PREFIX = re.compile(r"([a-z][a-z0-9]{0,15})_sk_live_", re.ASCII)
_PARTS = (("key id", 12), ("auth secret", 32), ("custody secret", 32))
_COPY_REMEDY = "copy the whole credential again from where it was shown, or create a new API key"


@dataclass(frozen=True, slots=True)
class Credential:
    """The API credential in its parts (specification: Authentication, Credential).

    `<tag>_sk_live_<keyId>.<authSecret>[.<custodySecret>]`: `tag` is the service's short tag,
    `key_id` not secret. The network gets only `header()`, so the custody secret cannot reach a
    socket.
    """

    tag: str
    key_id: str
    auth_secret: Secret = field(repr=False)
    custody_secret: Secret | None = field(default=None, repr=False)

    @classmethod
    @strips_frames
    def parse(cls, text: str | Secret) -> Credential:
        """Parse a credential. CredentialError says what is wrong without showing any of it."""
        raw = as_secret(text).reveal()
        prefix = _PREFIX.match(raw)
        if prefix is None or raw != raw.strip():
            raise _make_prefix_error(raw)
        parts = raw[prefix.end() :].split(".")
        if len(parts) not in (2, 3):
            raise CredentialError(
                (
                    f"the credential has {len(parts)} parts separated by dots; it should have "
                    "two or three"
                ),
                remedy=_COPY_REMEDY,
            )
        for (name, size), part in zip(_PARTS, parts, strict=False):
            _check_part(name, size, part)
        return cls(
            prefix[1], parts[0], Secret(parts[1]), Secret(parts[2]) if len(parts) == 3 else None
        )

    def header(self) -> Secret:
        """Return the value of the Authorization header: the first two parts only."""
        return Secret(f"Bearer {self.tag}_sk_live_{self.key_id}.{self.auth_secret.reveal()}")


def _check_part(name: str, size: int, part: str) -> None:
    try:
        length = len(encoding.decode_base64url(part))
    except WireError as error:
        raise CredentialError(
            f"the credential's {name} is not base64url ({error.reason})", remedy=_COPY_REMEDY
        ) from None
    if length != size:
        raise CredentialError(
            f"the credential's {name} has {length} bytes; it should have {size}",
            remedy=_COPY_REMEDY,
        )


def _make_prefix_error(raw: str) -> CredentialError:
    if not raw.strip():
        return CredentialError(
            "the credential is empty",
            remedy="forks and Dependabot runs get empty secrets, and so does `export "
            "NAME=$(COMMAND)` when the command fails; elsewhere set SEALPIPE_API_KEY",
        )
    if raw != raw.strip():
        return CredentialError(
            "the credential has white space around it",
            remedy="set it without spaces and line breaks",
        )
    if raw.startswith("Bearer "):
        return CredentialError(
            "the credential starts with 'Bearer'", remedy="set it without that word"
        )
    return CredentialError("the credential does not start with '<tag>_sk_live_'")


T = TypeVar("T")

RESPONSE_LIMIT = 1024 * 1024
"""Maximum size of a response's body in bytes (submissions have a limit of their own)."""


class Resend(Enum):
    """Whether a call with an unknown outcome may be sent again."""

    READ = "read"
    """Always: it changes nothing."""
    KEYED = "keyed"
    """Always, as the same bytes under the same idempotency key."""
    REPEATABLE = "repeatable"
    """Yes: a second call leads to the same state (expiring a share)."""
    NEVER = "never"
    """Never: a second call destroys something (deleting a request)."""


@dataclass(frozen=True, slots=True)
class Response:
    """A response of the service: status, headers by lower-case name, the whole body.

    If the body cannot be used (it is too long, or encoded), `flaw` says why and the body is empty.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    flaw: str = ""


class Failure(NamedTuple):
    """No complete response. `sent` is False only if provably no byte of the request was sent.

    `retry_after` (seconds) is set if the request was held back because the service had asked the
    client to wait.
    """

    sent: bool
    detail: str
    retry_after: float | None = None


def is_success(response: Response) -> bool:
    """Return whether the service reports success."""
    return 200 <= response.status < 300


@dataclass(frozen=True, slots=True, eq=False)
class Operation(Generic[T]):
    """One call. `path` is relative to the base URL, with each short code as one encoded segment.

    `body` is sent byte for byte. A response for which `is_settled` returns True is passed to
    `decode`, which raises ProtocolError if it breaks the protocol; every other response is a
    refusal. `is_complete` is for event streams that may stay open: it gets the events since its
    last call, and returns True if no more are needed.
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
    sealed: tuple[int, int] | None = None
    """Where ciphertext is in the body that we made ourselves: it is not searched for the
    credential.
    """
    if_unknown: str | None = None
    """The remedy if it is not known whether the service has carried it out; None: there is none."""
    own_connection: bool = False
    """Use a new connection for this call alone: the service may be closing one that is reused."""

    @property
    def subject(self) -> str:
        """The share or request that the path names, with its code as in the path, or empty."""
        resource, *rest = self.path.removeprefix("/").split("/")
        kind = {"shares": "share", "requests": "request"}.get(resource)
        return f"{kind} {rest[0]}" if kind and rest else ""

    @property
    def body_in_clear(self) -> bytes | bytearray | None:
        """The body without the ciphertext that we made ourselves."""
        if self.body is None or self.sealed is None:
            return self.body
        view, (start, end) = memoryview(self.body), self.sealed
        return bytes(view[:start]) + bytes(view[end:])

    @property
    def scope(self) -> str | None:
        """The scope that the key needs (specification: Scopes); None if the call needs none."""
        resource, *rest = self.path.removeprefix("/").split("/")
        if rest[1:] == ["access-log"]:
            return "audit:read"
        reads = self.method == "GET"
        return (
            f"{resource}:{'read' if reads else 'write'}"
            if resource in ("shares", "requests", "stats")
            else None
        )


def encode_members(members: Mapping[str, object]) -> bytes:
    """Encode the members that are not None, as JSON.stringify does.

    Raises UsageError for a lone surrogate.
    """
    present = {name: value for name, value in members.items() if value is not None}
    try:
        return json.dumps(
            present, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        ).encode()
    except UnicodeEncodeError:
        pass
    raise UsageError(
        "a title, description or other text in clear contains a lone surrogate",
        remedy="give it as UTF-8 text",
    )
