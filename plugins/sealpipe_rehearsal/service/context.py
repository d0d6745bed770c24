"""The arguments of handlers: the service, the HTTP request, the authenticated call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from .clock import Clock
from .credentials import Key, load_keys
from .fault_plan import FaultPlan
from .idempotency import InFlight
from .json_bodies import FIELD_TYPES, FIELD_TYPES_EXTENDED
from .log import Log
from .plans import Account, Entitlements, RateLimiter
from .responses import Response, refuse
from .store import Store
from .webhook_deliveries import Deliverer
from .webhooks import SIGNATURE_HEADER

# The specification states no limit; this generous one refuses only absurd sizes (413, no envelope).
MAX_BODY = 64 * 1024 * 1024

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

MOMENTS = ("share.expiring", "requests.listing", "request.ending")
"""Moments at which a valid call can fail (specification: Errors, 42 and 11)."""


def ignore_moment(moment: str) -> None:
    """The default of `Service.on_moment`."""


@dataclass
class Service:
    """One running service. Clock and randomness are injected, so that a test controls them.

    `on_moment` is called with the name of a moment ("shares.begun", "shares.committed", ...) in the
    thread that handles the call; it may block or raise. `extended` adds what the specification
    omits (gaps: newer endpoints, further members of a share, `status` of the lists).
    """

    store: Store
    clock: Clock
    log: Log
    tag: str
    token_bytes: Callable[[int], bytes]
    on_moment: Callable[[str], None] = ignore_moment
    max_body: int = MAX_BODY
    extended: bool = False
    signature_header: str = SIGNATURE_HEADER
    in_flight: InFlight = field(default_factory=InFlight)
    rate_limiter: RateLimiter = field(default_factory=RateLimiter)
    entitlements: Entitlements = field(default_factory=Entitlements)
    faults: FaultPlan = field(default_factory=FaultPlan)
    failing: dict[str, int] = field(default_factory=dict)
    deliverer: Deliverer = field(init=False)
    custody_digests: set[bytes] = field(init=False)
    """The SHA-256 of every custody secret that the service was told of."""

    @property
    def field_types(self) -> tuple[str, ...]:
        """Return the types of fields that its pages know.

        Any other renders as text (specification: field, `type`).
        """
        return FIELD_TYPES_EXTENDED if self.extended else FIELD_TYPES

    def __post_init__(self) -> None:
        self.deliverer = Deliverer(self.store, self.clock, self.log, self.signature_header)
        self.clock.on_advance = self.deliverer.wake
        self.custody_digests = {
            bytes.fromhex(key.custody_sha256) for key in load_keys(self.store) if key.custody_sha256
        }

    @contextmanager
    def next_call_fails(self) -> Iterator[None]:
        """Let the next call that reaches one of MOMENTS in the block fail with 500/42 or 500/11."""
        before = dict(self.failing)
        self.failing |= dict.fromkeys(MOMENTS, 1)
        try:
            yield
        finally:
            self.failing.clear()
            self.failing |= before

    def fail_at(self, moment: str, refusal: str) -> None:
        """Refuse with a row of REFUSALS if `failing` still counts a failure for this moment."""
        if self.failing.get(moment, 0) > 0:
            self.failing[moment] -= 1
            refuse(refusal)


@dataclass(frozen=True)
class HttpRequest:
    """A request, read to its end. `segments` is the path, split and then percent-decoded.

    Header names are in lower case; `headers` keeps repeated ones. `address` is the client's.
    """

    method: str
    segments: tuple[str, ...]
    query: Mapping[str, str]
    headers: tuple[tuple[str, str], ...]
    body: bytes
    address: str = "127.0.0.1"

    def header(self, name: str) -> str | None:
        """Return the value of a header, or None. Repeated headers are joined with commas."""
        values = [value for key, value in self.headers if key == name]
        return ", ".join(values) if values else None

    def is_to_loopback(self) -> bool:
        """Return whether the Host header names loopback.

        Foreign names can resolve to loopback, too (DNS rebinding).
        """
        host = self.header("host") or ""
        name, _, port = host.rpartition(":")
        return (name if port.isdigit() else host).lower() in _LOOPBACK


@dataclass(frozen=True)
class Call:
    """A request that has passed the gateway's credential check."""

    service: Service
    http_request: HttpRequest
    key: Key
    account: Account
    codes: tuple[str, ...] = ()


Handler = Callable[[Call], Response]
