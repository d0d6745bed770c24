"""The arguments of handlers: the service, the HTTP request, the authenticated call."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import ClassVar

from .clock import Clock
from .credentials import Key
from .database.decisions import Store
from .journal import Journal
from .json_bodies import FIELD_TYPES, FIELD_TYPES_EXTENDED
from .mail import MailServer
from .plans import Account
from .public_addresses import Allows, allow_all
from .responses import Response
from .webhook_deliveries import Deliverer
from .webhooks import SIGNATURE_HEADER, Seals, Unsealed

# The specification states no limit; this generous one refuses only absurd sizes (413, no envelope).
MAX_BODY = 64 * 1024 * 1024

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass
class Service:
    """One running service: what its handlers use.

    Store, clock, randomness and journal are given by whoever runs it. `extended` adds what the
    specification omits (gaps: newer endpoints, further members of a share, `status` of the lists).
    `public_url` is where it is reached, `https://HOST[:PORT]`; None for loopback under any name.
    `allows` says of an address whether webhooks may go there. The authorities in `ca_file` are
    trusted besides those of the machine, for webhooks and the mail server.
    """

    is_rehearsal: ClassVar[bool] = False
    """Whether its people are made up: then submitters say themselves who and where they are."""

    store: Store
    clock: Clock
    log: Journal
    tag: str
    token_bytes: Callable[[int], bytes]
    max_body: int = MAX_BODY
    extended: bool = False
    signature_header: str = SIGNATURE_HEADER
    public_url: str | None = None
    version: str = "1"
    seals: Seals = field(default_factory=Unsealed)
    allows: Allows = allow_all
    mail_server: MailServer | None = None
    ca_file: str | None = None
    deliverer: Deliverer = field(init=False)
    is_stopping: bool = field(init=False, default=False)

    @property
    def field_types(self) -> tuple[str, ...]:
        """Return the types of fields that its pages know.

        Any other renders as text (specification: field, `type`).
        """
        return FIELD_TYPES_EXTENDED if self.extended else FIELD_TYPES

    def __post_init__(self) -> None:
        agent = f"sealpipe-{self.kind}-webhooks"
        self.deliverer = Deliverer(
            self.store,
            self.clock,
            self.log,
            self.signature_header,
            agent,
            self.seals,
            self.allows,
            self.mail_server,
            self.ca_file,
        )

    @property
    def kind(self) -> str:
        """Return what it is, for its name."""
        return "rehearsal" if self.is_rehearsal else "server"

    def find_origin(self, http_request: HttpRequest) -> str | None:
        """Return the origin that a request was sent to; None for another host than the service's.

        A foreign name can lead here, too (DNS rebinding).
        """
        host = http_request.header("host") or ""
        if self.public_url is None:
            return f"http://{host}" if http_request.is_to_loopback() else None
        return self.public_url if is_host_of(self.public_url, host) else None

    def new_code(self) -> str:
        """Draw a short code."""
        return base64.urlsafe_b64encode(self.token_bytes(9)).decode("ascii")

    def reach(self, moment: str) -> None:
        """A handler is at a moment of its call, such as "shares.begun" or "shares.committed".

        Nothing happens, unless whoever runs the service overrides it: it may wait, raise or refuse.
        """


@dataclass(frozen=True)
class HttpRequest:
    """A request, read to its end. `segments` is the path, split and then percent-decoded.

    Header names are in lower case; `headers` keeps repeated ones. `address` is the client's;
    `stranger` is under which name it is counted, unless it is this machine or a proxy. `target` is
    the raw path with its query, for a rehearsal's log. `told` is what else a server's log tells of
    it: the id of its key, the reason of a refusal.
    """

    method: str
    segments: tuple[str, ...]
    query: Mapping[str, str]
    headers: tuple[tuple[str, str], ...]
    body: bytes
    address: str = "127.0.0.1"
    stranger: str | None = None
    target: str = ""
    told: MutableMapping[str, str] = field(default_factory=dict)

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
    """A request that has passed the gateway's credential check, at `now` by the database."""

    service: Service
    http_request: HttpRequest
    key: Key
    account: Account
    now: float
    auth_secret: str = field(repr=False)
    codes: tuple[str, ...] = ()


def is_host_of(public_url: str, host: str) -> bool:
    """Return whether a Host header is that of a URL, with or without the port of its scheme."""
    scheme, _, own = public_url.partition("://")
    return host.lower().removesuffix(_DEFAULT_PORTS[scheme]) == own


_DEFAULT_PORTS = {"http": ":80", "https": ":443"}

Handler = Callable[[Call], Response]
