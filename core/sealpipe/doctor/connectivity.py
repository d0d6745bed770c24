"""Checks the connection to the service, and to the host that links lead to."""

from __future__ import annotations

import os
import socket
import ssl
import time
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # not in typeshed

from sealpipe import policy
from sealpipe.api import shares
from sealpipe.api.operation import Failure, Operation, Response
from sealpipe.api.responses import make_service_error, read_clock
from sealpipe.doctor.findings import Finding, report_failure, report_ok, report_warning
from sealpipe.errors import (
    ConnectError,
    InvalidRequestError,
    OutcomeUnknownError,
    SealpipeError,
    SettingError,
)
from sealpipe.network.exchange import SendWatch, Service
from sealpipe.network.service_network import ServiceNetwork, find_proxy, make_tls_context
from sealpipe.network.sockets import ProxyError, connect
from sealpipe.parsing import is_loopback
from sealpipe.session import Session, Transport, send_in_turn
from sealpipe.share.options import plan_share
from sealpipe.share.post import describe_share
from sealpipe.share.seal import SealedShare, seal_share
from sealpipe.wire.fields import Field

CALL_TIMEOUT = 15.0
"""Seconds that one call may take."""
MAX_CLOCK_SKEW = timedelta(seconds=30)
EXPIRY_WARNING = timedelta(days=14)


def check_route(
    base_url: str, ca_file: Path | None, environ: Mapping[str, str]
) -> Iterator[Finding]:
    """Check host and proxy, and whether the trusted certificates can be read. Sends nothing."""
    parts = urlsplit(base_url)
    host = f"{parts.scheme}://{parts.netloc}"
    try:
        proxy = find_proxy(base_url)
        yield report_ok(
            "connectivity",
            f"{host}, {_describe_direct(parts.hostname or '', environ)}"
            if proxy is None
            else _describe_proxy(host, proxy),
        )
        if parts.scheme == "https":
            make_tls_context(environ, ca_file)
    except SettingError as error:
        yield report_failure("connectivity", error)


def _describe_direct(host: str, environ: Mapping[str, str]) -> str:
    if is_loopback(host):
        return "direct: loopback never uses a proxy"
    no_proxy = environ.get("no_proxy") or environ.get("NO_PROXY")
    return (
        f"direct: NO_PROXY ({no_proxy}) includes it"
        if proxy_bypass_environment(host)
        else "direct: no proxy is set"
    )


def _describe_proxy(host: str, proxy: str) -> str:
    parts = urlsplit(proxy)
    login = " with a login" if parts.username or parts.password else ""
    port = f":{parts.port}" if parts.port else ""
    return f"{host}, through the proxy {parts.scheme}://{parts.hostname}{port}{login}"


class ServiceConnection:
    """A connection to the service.

    Sends every call once, within one deadline for all, and counts them.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self._network = ServiceNetwork(
            Service(session.base_url, session.credential, session.gate, session.ca_file),
            lambda: _CertificateWatch(self),
        )
        self._end = time.monotonic() + session.deadline
        self.calls = 0
        self.milliseconds = 0
        self.certificate: Mapping[str, Any] | None = None
        self.tls_version = ""

    def send(self, operation: Operation[Any]) -> Response | Failure:
        """Send one call, and return its result."""
        remaining = min(CALL_TIMEOUT, self._end - time.monotonic())
        if remaining <= 0:
            return Failure(sent=False, detail="the deadline passed before it was sent")
        self.calls += 1
        started = time.monotonic()
        result = send_in_turn(
            self._network.limiter, remaining, partial(self._network.send, operation)
        )
        self.milliseconds = round((time.monotonic() - started) * 1000)
        return result

    def close(self) -> None:
        self._network.close()


class _OnConnection(Transport):
    """A session's calls, on a connection that counts them."""

    def __init__(self, connection: ServiceConnection) -> None:
        super().__init__()
        self._connection = connection

    def send(
        self, _session: Session, operation: Operation[Any], _timeout: float
    ) -> Response | Failure:
        return self._connection.send(operation)


class _CertificateWatch(SendWatch):
    """Records the certificate of the innermost TLS: with an https:// proxy there are two."""

    def __init__(self, line: ServiceConnection) -> None:
        super().__init__()
        self._connection = line

    def note(self, event: str, info: dict[str, Any]) -> None:
        super().note(event, info)
        if event.endswith("start_tls.complete"):
            tls = info["return_value"].get_extra_info("ssl_object")
            if tls is not None:
                self._connection.certificate = tls.getpeercert()
                self._connection.tls_version = tls.version() or ""


def check_certificate(connection: ServiceConnection) -> Iterator[Finding]:
    """Report issuer and expiry of the certificate of the service (or of a gateway before it)."""
    certificate = connection.certificate
    if not certificate:
        return
    names = {key: value for part in certificate.get("issuer", ()) for key, value in part}
    issuer = (
        ", ".join(
            names[key]
            for key in ("organizationName", "organizationalUnitName", "commonName")
            if key in names
        )
        or "an unnamed issuer"
    )
    expires_at = datetime.fromtimestamp(ssl.cert_time_to_seconds(certificate["notAfter"]), UTC)
    description = f"{connection.tls_version}, issued by {issuer}, until {expires_at:%Y-%m-%d}"
    if expires_at - datetime.now(UTC) < EXPIRY_WARNING:
        yield report_warning(
            "certificate", description, "it expires soon: the service's operator has to renew it"
        )
    else:
        yield report_ok("certificate", description)


def check_clock(response: Response, now: datetime) -> Finding:
    """Compare our clock with the service's Date header, which has whole seconds."""
    server_time = read_clock(response.headers)
    if server_time is None:
        return report_ok("clock", "not compared: the service sends no Date header")
    offset = now - server_time
    seconds = round(abs(offset).total_seconds())
    difference = f"{seconds} s {'ahead of' if offset > timedelta() else 'behind'} the service's"
    if abs(offset) > MAX_CLOCK_SKEW:
        return report_warning(
            "clock",
            f"this machine's clock is {difference}",
            "set the clock: expiries are calculated from it",
        )
    return report_ok("clock", f"within {max(seconds, 1)} s of the service's")


LINK_ADDRESS_CHECK = "link address"
CONNECT_TIMEOUT = 10.0
"""Seconds to connect."""

_UNREACHABLE_REMEDY = "check SEALPIPE_LINK_BASE_URL: recipients cannot open links there"
_UNCERTAIN_REMEDY = (
    "recipients may still reach it: this machine's outbound access may be restricted"
)


def check_link_address(
    link_base_url: str, ca_file: Path | None, environ: Mapping[str, str]
) -> Iterator[Finding]:
    """Connect to the host of links, with TLS for https://.

    No request is sent, so no short code and no fragment.
    """
    parts = urlsplit(link_base_url)
    host = f"{parts.scheme}://{parts.netloc}"
    proxy = None
    try:
        proxy = find_proxy(link_base_url)
        connect(
            link_base_url,
            partial(make_tls_context, environ, ca_file),
            proxy,
            CONNECT_TIMEOUT,
            CONNECT_TIMEOUT,
        ).close()
    except SettingError as error:
        yield report_warning(
            LINK_ADDRESS_CHECK, f"{host} was not checked: {error.message}", error.remedy
        )
    except ProxyError as error:
        yield report_warning(
            LINK_ADDRESS_CHECK, f"{host}: the proxy responded with {error}", _UNCERTAIN_REMEDY
        )
    except TimeoutError:
        yield report_warning(
            LINK_ADDRESS_CHECK,
            f"{host} did not respond within {CONNECT_TIMEOUT:g} seconds",
            _UNCERTAIN_REMEDY,
        )
    except (OSError, ValueError) as error:  # ValueError: an invalid host name
        if proxy is not None and not isinstance(error, ssl.SSLError):
            yield report_warning(
                LINK_ADDRESS_CHECK,
                f"{host} was not reached through the proxy: {_describe_reason(error)}",
                _UNCERTAIN_REMEDY,
            )
            return
        yield report_failure(
            LINK_ADDRESS_CHECK,
            ConnectError(
                f"{host} cannot be reached: {_describe_reason(error)}", remedy=_UNREACHABLE_REMEDY
            ),
        )
    else:
        through = "" if proxy is None else ", through the proxy"
        yield report_ok(LINK_ADDRESS_CHECK, f"{host} can be reached{through}")


def _describe_reason(error: OSError | ValueError) -> str:
    """Describe an error, but never with text from the network."""
    if isinstance(error, socket.gaierror):
        return (
            "the host name does not exist"
            if error.errno == socket.EAI_NONAME
            else "the DNS lookup failed"
        )
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate was rejected: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({error.reason or 'the server does not speak TLS'})"
    if isinstance(error, OSError):
        return os.strerror(error.errno) if error.errno else "the connection was closed"
    return "the host name is not valid"


T = TypeVar("T")

VALUE = (
    "A test of `sealpipe doctor --roundtrip`: made up, not a secret, expired as soon as it is "
    "created."
)
LIFETIME = timedelta(minutes=5)
"""Expiry of the test share, in case expiring it fails."""

_EXPIRY_REMEDY = "the test share expires by itself within five minutes"


def check_round_trip(session: Session, connection: ServiceConnection) -> Iterator[Finding]:
    """Create and expire a test share: at most three calls, each sent once.

    Policies apply as to any share.
    """
    test = plan_share(
        [Field("test", VALUE, type="text")], title="sealpipe doctor: a test", expires_in=LIFETIME
    )
    session = session.with_transport(_OnConnection(connection))
    session.note_custody(has_custody=True)  # so that the service is asked
    sealed = seal_share(test, session)
    findings: list[Finding] = []

    def work(session: Session) -> str:
        return _run_calls(session, connection, sealed, findings)

    action = describe_share(session, test, sealed)
    try:
        policy.run_under_policy(session, action, work, _describe_outcome)
    except SealpipeError as error:
        findings.append(report_failure("roundtrip", error))
    yield from findings


def _describe_outcome(short_code: str) -> Mapping[str, object]:
    return {"outcome": "created", "short_code": short_code, "ended": True}


def _run_calls(
    session: Session, connection: ServiceConnection, sealed: SealedShare, findings: list[Finding]
) -> str:
    try:
        created = _call(session, shares.create(sealed.body, str(uuid.uuid4())))
    except InvalidRequestError as error:
        if sealed.wrap_at is None or "item_key_wrap" not in error.additional_data:
            raise
        session.note_custody(has_custody=False)
        findings.append(
            report_warning(
                "custody",
                "the key has no custody level",
                "register its custody key, or share with --custody off",
            )
        )
        created = _call(
            session,
            shares.create(shares.without_wrap(sealed.body, sealed.wrap_at), str(uuid.uuid4())),
        )
    create_ms = connection.milliseconds
    _call(session, shares.expire(created.short_code))
    findings.append(
        report_ok(
            "roundtrip",
            (
                f"a test share was created in {create_ms} ms and expired in "
                f"{connection.milliseconds} ms"
            ),
        )
    )
    if created.custody == "failed":
        advice = "enrol the account's zero-knowledge key"
        findings.append(
            report_warning("custody", "the service could not store the wrapped key", advice)
        )
    elif created.custody:
        findings.append(report_ok("custody", f"the service responded with `{created.custody}`"))
    return created.short_code


def _call(session: Session, operation: Operation[T]) -> T:
    """Send one call, and return its decoded response."""
    result = session.send(operation, CALL_TIMEOUT)
    if isinstance(result, Failure):
        kind = OutcomeUnknownError if result.sent else ConnectError
        raise kind(
            f"could not {operation.name}: {result.detail}",
            remedy=_EXPIRY_REMEDY if result.sent else None,
        )
    if not operation.is_settled(result):
        raise make_service_error(result)
    return operation.decode(result)
