"""What the key may do: reading is asked for with GETs, writing with creates that cannot create anything.

A POST without an Idempotency-Key is refused after the look at its scope (gaps, order of checks) and stores nothing;
its body is empty besides. Never by DELETE, which would end something.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from sealpipe.api import Failure, Operation, Resend, Response
from sealpipe.api.codec import parse_object
from sealpipe.api.refusals import service_error
from sealpipe.doctor import Finding, connectivity, failure, ok, warning
from sealpipe.errors import (
    AuthenticationError,
    ConnectError,
    InvalidRequestError,
    MissingScopeError,
    OutcomeUnknownError,
    ProtocolError,
    RateLimitError,
    RetriesExhaustedError,
    ServiceError,
)


class Probe(NamedTuple):
    """A call that tells whether the key has a scope, and what the scope is for."""

    scope: str
    method: str
    path: str
    used_by: str

    def operation(self) -> Operation[Response]:
        """The call. Whatever it answers, it has changed nothing."""
        writes = self.method == "POST"
        return Operation(
            name=f"look for the scope {self.scope}",
            method=self.method,
            path=self.path,
            resend=Resend.NEVER,
            decode=lambda answer: answer,
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
    """What the calls have brought so far."""

    granted: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    stopped: bool = False
    """Further calls would tell nothing new."""

    @property
    def accepted(self) -> bool:
        """The gateway took the credential at least once."""
        return bool(self.granted or self.missing)


def check_scopes(line: connectivity.ServiceConnection, asked: ScopeResults) -> Iterator[Finding]:
    """One for each scope, and what the first answer tells of the way. Five calls at most."""
    for number, probe in enumerate(PROBES):
        before = datetime.now(UTC)
        result = line.send(probe.operation())
        if number == 0 and isinstance(result, Response):
            yield ok("service", f"answered in {line.milliseconds} ms")
            yield from connectivity.check_certificate(line)
            yield connectivity.check_clock(result, before + (datetime.now(UTC) - before) / 2)
        yield _judge(probe, result, asked)
        if asked.stopped:
            return
    if not asked.granted and asked.missing:
        nothing = MissingScopeError(
            "the API key has no scopes: every call is refused",
            remedy="create an API key with the scopes that you need, and revoke this one",
        )
        yield failure("scopes", nothing)


def _judge(probe: Probe, result: Response | Failure, asked: ScopeResults) -> Finding:
    check = f"scope {probe.scope}"
    if isinstance(result, Failure):
        asked.stopped = True
        return _unanswered(result)
    error = _refused(probe, result)
    match error:
        case None:
            asked.granted.add(probe.scope)
            return ok(check, f"granted: {probe.used_by}")
        case MissingScopeError():
            asked.missing.add(probe.scope)
            return warning(
                check, f"not granted: {probe.used_by} needs it", "create an API key with this scope if you need it"
            )
        case RateLimitError():
            asked.stopped = True
            return warning(
                check, "unknown: the rate limit is used up, so the rest was not checked", "run it again later"
            )
        case AuthenticationError() | ProtocolError() if asked.accepted:
            return warning(check, f"unknown: {error.message}", "the service or a gateway does not offer this endpoint")
    asked.stopped = isinstance(error, AuthenticationError | ProtocolError)
    return failure("service" if asked.stopped else check, error)


def _refused(probe: Probe, answer: Response) -> ServiceError | None:
    """Why the scope cannot be said to be there; None where it can."""
    if 200 <= answer.status < 300:
        if probe.method == "POST":
            return ProtocolError("the service accepted a create without an Idempotency-Key", status=answer.status)
        with suppress(ProtocolError):
            parse_object(answer)
            return None
        return ProtocolError("the answer is not the service's: it is not a JSON object", status=answer.status)
    error = service_error(answer)
    if probe.method == "POST" and isinstance(error, InvalidRequestError):
        return None  # 104, or 19: both are looked at after the scope
    if isinstance(error, OutcomeUnknownError):
        return RetriesExhaustedError(error.message, status=error.status, error_code=error.error_code)
    return error


def _unanswered(result: Failure) -> Finding:
    if result.retry_after is not None:
        return warning("service", result.detail, "run it again later")
    if not result.sent:
        return failure("service", ConnectError(f"cannot connect: {result.detail}"))
    return failure("service", RetriesExhaustedError(f"no complete answer: {result.detail}"))
