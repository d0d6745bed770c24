"""Check the key's scopes: reading with GETs, writing with creates that cannot create anything.

The service checks the scope of a POST before it refuses it for its missing Idempotency-Key, and
stores nothing. The body is empty as well. DELETE is never used: it would expire something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from sealpipe import config_file
from sealpipe.api.account import Capabilities, get_capabilities
from sealpipe.api.operation import Credential, Failure, Operation, Resend, Response
from sealpipe.api.responses import make_service_error, parse_object
from sealpipe.config import Config
from sealpipe.doctor import connectivity
from sealpipe.doctor.findings import Finding, report_failure, report_ok, report_warning, run_check
from sealpipe.doctor.machine import Settings
from sealpipe.errors import (
    AuthenticationError,
    ConnectError,
    CredentialError,
    InvalidRequestError,
    MissingScopeError,
    OutcomeUnknownError,
    ProtocolError,
    RateLimitError,
    RetriesExhaustedError,
    SealpipeError,
    ServiceError,
)
from sealpipe.registry import Registry
from sealpipe.registry.stores import read_policy_hooks
from sealpipe.session import Session
from sealpipe.state.custody import CustodyLevels
from sealpipe.state.files import find_state_directory
from sealpipe.wire import encoding, keys


class Probe(NamedTuple):
    """A call that shows whether the key has a scope, and what the scope is for."""

    scope: str
    method: str
    path: str
    used_by: str

    def make_operation(self) -> Operation[Response]:
        """Return the call. It changes nothing, whatever the response."""
        writes = self.method == "POST"
        return Operation(
            name=f"look for the scope {self.scope}",
            method=self.method,
            path=self.path,
            resend=Resend.NEVER,
            decode=lambda response: response,
            body=b"{}" if writes else None,
            headers={"content-type": "application/json"} if writes else {},
            query={} if writes or self.path == "/stats" else {"limit": "1"},
        )


PROBES = (
    Probe("shares:read", "GET", "/shares", "`sealpipe shares list`"),
    Probe("shares:write", "POST", "/shares", "`sealpipe share`"),
    Probe("requests:read", "GET", "/requests", "`sealpipe requests list`"),
    Probe("requests:write", "POST", "/requests", "`sealpipe requests expire`"),
    Probe("stats:read", "GET", "/stats", "`sealpipe stats`"),
)


@dataclass(slots=True)
class ScopeResults:
    """The results of the calls so far."""

    granted: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    is_stopped: bool = False
    """Whether further calls would reveal nothing new."""

    @property
    def is_accepted(self) -> bool:
        """Whether the gateway accepted the credential at least once."""
        return bool(self.granted or self.missing)


def check_scopes(
    connection: connectivity.ServiceConnection, scope_results: ScopeResults
) -> Iterator[Finding]:
    """Check each scope, and certificate and clock with the first response.

    Makes at most five calls.
    """
    for number, probe in enumerate(PROBES):
        before = datetime.now(UTC)
        result = connection.send(probe.make_operation())
        if number == 0 and isinstance(result, Response):
            yield report_ok("service", f"responded in {connection.milliseconds} ms")
            yield from connectivity.check_certificate(connection)
            yield connectivity.check_clock(result, before + (datetime.now(UTC) - before) / 2)
        yield _make_finding(probe, result, scope_results)
        if scope_results.is_stopped:
            return
    if not scope_results.granted and scope_results.missing:
        no_scopes = MissingScopeError(
            "the API key has no scopes: every call is refused",
            remedy="create an API key with the scopes that you need, and revoke this one",
        )
        yield report_failure("scopes", no_scopes)


def check_capabilities(connection: connectivity.ServiceConnection) -> Iterator[Finding]:
    """Report what key and plan allow, and whether the custody secret is the key's own."""
    operation = get_capabilities()
    result = connection.send(operation)
    if isinstance(result, Failure):
        return
    try:
        found = operation.decode(result)
    except ProtocolError as error:
        yield report_warning(
            "plan", f"unknown: {error.message}", "the service's answer about the plan is malformed"
        )
        return
    if found is not None:
        connection.session.note_custody(has_custody=found.has_custody)
        yield from _describe_own_service(found.extra.get("service"))
        yield report_ok(
            "plan", ", ".join(_describe_capabilities(found)) or "the service says nothing about it"
        )
        if found.key.get("compromised") is True:
            yield report_warning(
                "compromise", "compromised: revoke", "create a new API key, and revoke this one"
            )
    yield from check_custody(connection.session.credential, {} if found is None else found.key)


def _describe_own_service(told: object) -> Iterator[Finding]:
    """Report which service of the user's own it is; the vendor's says nothing of the kind."""
    if isinstance(told, dict):
        names = [told.get(member) for member in ("name", "version")]
        yield report_ok(
            "service", " ".join(["your own service:", *(str(each) for each in names if each)])
        )


def check_custody(credential: Credential, key: Mapping[str, Any]) -> Iterator[Finding]:
    """Compare the credential's custody secret with the registered public key, if it is told.

    A damaged secret is noticed by nothing else: what is requested with it can never be collected
    with the right one.
    """
    if credential.custody_secret is None:
        return
    point = keys.from_custody_secret(
        credential.custody_secret.reveal(), tag=credential.tag
    ).public_key
    registered = key.get("custody_public_key")
    if registered == encoding.encode_base64url(point):
        yield report_ok("custody secret", "it belongs to the custody public key that is registered")
    elif isinstance(registered, str):
        wrong = CredentialError(
            "the credential's third part, the custody secret, is not the one of this API key: the "
            "service has another custody public key",
            remedy=(
                "copy the whole credential again from where it was shown, or create a new API key"
            ),
        )
        yield report_failure("custody secret", wrong)
    elif "custody_public_key" in key:
        yield report_ok("custody secret", "not checked: no custody public key is registered")
    else:
        yield report_ok(
            "custody secret",
            "not checked: the service does not report the registered custody public key",
        )


def _describe_capabilities(found: Capabilities) -> Iterator[str]:
    for table, name, text, unlimited in _TOLD:
        value = getattr(found, table).get(name)
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            yield unlimited if value == -1 else text.format(value)
    switched = {
        state: [name for name, on in found.features.items() if on is state]
        for state in (True, False)
    }
    yield from (
        f"{word}: {' '.join(switched[state])}"
        for state, word in ((True, "with"), (False, "without"))
        if switched[state]
    )


_TOLD = (
    ("plan", "name", "{}", "no plan"),
    ("key", "organization_id", "organisation {}", "no organisation"),
    ("key", "custody_level", "custody {}", "custody unknown"),
    ("key", "rate_limit_rpm", "{} requests per minute", "any number of requests per minute"),
    ("limits", "remaining_shares", "{} more shares", "any number of shares"),
    ("limits", "max_days_access_logs", "{} days of access logs", "access logs for good"),
)
"""What is told of the capabilities, if the service gives it: table, member, text, and what to say
of -1, which is no limit.
"""


def _make_finding(probe: Probe, result: Response | Failure, scope_results: ScopeResults) -> Finding:
    check = f"scope {probe.scope}"
    if isinstance(result, Failure):
        scope_results.is_stopped = True
        return _report_failure(result)
    error = _find_error(probe, result)
    match error:
        case None:
            scope_results.granted.add(probe.scope)
            return report_ok(check, f"granted: {probe.used_by}")
        case MissingScopeError():
            scope_results.missing.add(probe.scope)
            return report_warning(
                check,
                f"not granted: {probe.used_by} needs it",
                "create an API key with this scope if you need it",
            )
        case RateLimitError():
            scope_results.is_stopped = True
            return report_warning(
                check,
                "unknown: the rate limit is used up, so the rest was not checked",
                "run it again later",
            )
        case AuthenticationError() | ProtocolError() if scope_results.is_accepted:
            return report_warning(
                check,
                f"unknown: {error.message}",
                "the service or a gateway does not offer this endpoint",
            )
    scope_results.is_stopped = isinstance(error, AuthenticationError | ProtocolError)
    return report_failure("service" if scope_results.is_stopped else check, error)


def _find_error(probe: Probe, response: Response) -> ServiceError | None:
    """Return why the key is not known to have the scope; None if it has it."""
    if 200 <= response.status < 300:
        if probe.method == "POST":
            return ProtocolError(
                "the service accepted a create without an Idempotency-Key", status=response.status
            )
        with suppress(ProtocolError):
            parse_object(response)
            return None
        return ProtocolError(
            "the response is not the service's: it is not a JSON object", status=response.status
        )
    error = make_service_error(response)
    if probe.method == "POST" and isinstance(error, InvalidRequestError):
        return None  # 104 or 19: the service checks both after the scope
    if isinstance(error, OutcomeUnknownError):
        return RetriesExhaustedError(
            error.message, status=error.status, error_code=error.error_code
        )
    return error


def _report_failure(result: Failure) -> Finding:
    if result.retry_after is not None:
        return report_warning("service", result.detail, "run it again later")
    if not result.sent:
        return report_failure("service", ConnectError(f"cannot connect: {result.detail}"))
    return report_failure(
        "service", RetriesExhaustedError(f"no complete response: {result.detail}")
    )


def check_service(
    settings: Settings,
    config: Config,
    credential: Credential | None,
    make_registry: Callable[[], Registry],
    *,
    roundtrip: bool,
) -> Iterator[Finding]:
    """Check the service as far as the settings allow."""
    addresses = {
        name: settings[name].get_usable() for name in ("base_url", "link_base_url", "ca_file")
    }
    try:
        machine = config.machine
        addresses = config_file.enforce_service(machine, addresses, config.environ)
    except SealpipeError as error:  # never send the credential if the machine's config forbids it
        yield report_failure("service", error)
        return
    base_url, ca_file = addresses["base_url"], addresses["ca_file"]
    ca_path = None if ca_file is None else Path(ca_file)
    route = (
        []
        if base_url is None
        else list(connectivity.check_route(base_url, ca_path, config.environ))
    )
    yield from route
    if base_url is None or credential is None or any(finding.error for finding in route):
        yield report_warning(
            "service", "not checked: fix base URL, credential and certificates first"
        )
        return
    # The link base URL is optional: the only link is that of a test share, which is discarded.
    link_base_url = addresses["link_base_url"] or base_url
    deadline = settings["deadline"].get_usable() or 60.0
    levels = CustodyLevels(
        lambda: find_state_directory(config.environ, settings["state_dir"].get_usable()) / "custody"
    )
    session = Session(
        credential, base_url, link_base_url, make_registry, deadline, ca_path, custody_levels=levels
    )
    connection, scope_results = connectivity.ServiceConnection(session), ScopeResults()
    try:
        yield from check_scopes(connection, scope_results)
        if roundtrip and "shares:write" in scope_results.granted and not scope_results.is_stopped:
            hooked = replace(session, policy_hooks=read_policy_hooks(config.user, machine))
            yield from run_check(
                "roundtrip", lambda: connectivity.check_round_trip(hooked, connection)
            )
        elif roundtrip:
            yield report_warning("roundtrip", "not tried: fix the checks before it first")
        if not scope_results.is_stopped:
            yield from check_capabilities(connection)
    finally:
        connection.close()
