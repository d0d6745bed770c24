"""All of /v1: the checks in order, then the route (specification: Endpoints, Authentication)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from . import extended, mcp, requests, shares
from .context import Call, Handler, HttpRequest, Service
from .credentials import PresentedCredential, key_from, parse_bearer, secret_matches
from .journal import Note
from .plans import NO_LIMIT, account_from
from .responses import RefusalError, Response, refuse, refuse_at_gateway

CODE = "{shortCode}"


@dataclass(frozen=True)
class Route:
    """A row of the specification's table of endpoints.

    `scope` is None if the route needs none or checks it itself.
    """

    method: str
    path: tuple[str, ...]
    scope: str | None
    handler: Handler

    def codes(self, method: str, segments: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return the short codes in a path, or None if the route does not match."""
        if method != self.method or len(segments) != len(self.path):
            return None
        pairs = list(zip(self.path, segments, strict=True))
        if any(want not in (CODE, got) for want, got in pairs):
            return None
        return tuple(got for want, got in pairs if want == CODE)


# All routes. DELETE without a short code is a specific refusal of the specification (44), not an
# unknown route; with a trailing slash the code is empty.
ROUTES = (
    Route("POST", ("shares",), "shares:write", shares.create),
    Route("GET", ("shares",), "shares:read", shares.list_shares),
    Route("GET", ("shares", CODE), "shares:read", shares.show),
    Route("DELETE", ("shares", CODE), "shares:write", shares.delete),
    Route("DELETE", ("shares",), "shares:write", shares.delete),
    Route("POST", ("requests",), "requests:write", requests.create),
    Route("GET", ("requests",), "requests:read", requests.list_requests),
    Route("GET", ("requests", CODE), "requests:read", requests.show),
    Route("GET", ("requests", CODE, "submissions"), "requests:read", requests.submissions),
    Route("DELETE", ("requests", CODE), "requests:write", requests.delete),
    Route("DELETE", ("requests",), "requests:write", requests.delete),
    Route("GET", ("stats",), "stats:read", shares.show_stats),
)

# JSON-RPC: each tool has its own scope. MCP also uses GET and DELETE on this path.
MCP_ROUTES = (
    Route("POST", ("mcp",), None, mcp.post),
    Route("GET", ("mcp",), None, mcp.method_not_allowed),
    Route("DELETE", ("mcp",), None, mcp.method_not_allowed),
)
# not in the specification (gaps: newer endpoints)
EXTENDED_ROUTES = (
    Route("GET", ("shares", CODE, "access-log"), extended.SCOPE, extended.access_log),
    Route("GET", ("capabilities",), None, extended.capabilities),
)


def handle(service: Service, http_request: HttpRequest) -> Response:
    """Handle a call under /v1."""
    try:
        call = _authenticate(service, http_request)
        route, codes = _find_route(http_request, extended=service.extended)
        for check in CHECKS:
            check(call, route)
        return route.handler(replace(call, codes=codes))
    except RefusalError as refused:
        return refused.response


def refuse_caller(service: Service, http_request: HttpRequest) -> Response | None:
    """Return the refusal of whoever has no credential that can be used."""
    return _refusal_of(_authenticate, service, http_request)


def refuse_at_sight(service: Service, http_request: HttpRequest) -> Response | None:
    """Return the refusal of whoever has nothing that looks like a credential."""
    return _refusal_of(_read_credential, service, http_request)


def _refusal_of(
    check: Callable[[Service, HttpRequest], object], service: Service, http_request: HttpRequest
) -> Response | None:
    try:
        check(service, http_request)
    except RefusalError as refused:
        return refused.response
    return None


def _read_credential(service: Service, http_request: HttpRequest) -> PresentedCredential:
    header = http_request.header("authorization")
    if header is None:
        refuse_at_gateway("no_authorization")
    credential = parse_bearer(header, service.tag)
    if credential is None:
        refuse_at_gateway("not_usable")
    return credential


def _authenticate(service: Service, http_request: HttpRequest) -> Call:
    """Check the credential on every call, so that a revocation takes effect on the next one."""
    credential = _read_credential(service, http_request)
    row = service.store.caller(credential.key_id)
    matches = secret_matches(row, credential.auth_secret)
    if row is None or not matches:  # before anything that only a key which exists would cost
        refuse_at_gateway("not_usable")
    key = key_from(row)
    http_request.told["key"] = key.key_id  # also of a revoked one: whose machine still has it?
    if credential.three_parts:
        # The key still works with two parts: its owner revokes it after replacing it (gaps:
        # compromise). With a wrong auth secret nothing is recorded, or anybody who knows a key id
        # could have that key replaced.
        if credential.custody_form:
            _record_compromise(service, key.key_id)
        refuse_at_gateway("not_usable")
    if key.revoked_at is not None:
        refuse_at_gateway("not_usable")
    account = account_from(key.space, row, "account_")
    if not account.api_access:
        refuse_at_gateway("not_usable")
    service.store.use(key.key_id, row["now"], key.last_used_at)
    return Call(service, http_request, key, account, row["now"], credential.auth_secret)


def _record_compromise(service: Service, key_id: str) -> None:
    if service.store.compromise(key_id):
        now = service.clock.now()
        service.log.add_note(Note(now, "key.compromised", key_id, "compromised: revoke"))


def _find_route(http_request: HttpRequest, *, extended: bool) -> tuple[Route, tuple[str, ...]]:
    for route in (*ROUTES, *MCP_ROUTES, *(EXTENDED_ROUTES if extended else ())):
        codes = route.codes(http_request.method, http_request.segments[1:])
        # only DELETE has a specific refusal for an empty code
        if codes is not None and (all(codes) or route.method == "DELETE"):
            return route, codes
    return refuse_at_gateway("no_route")


def _check_rate(call: Call, _: Route) -> None:
    per_minute = call.account.limits.requests_per_minute or 0
    if per_minute == NO_LIMIT:
        return
    wait = call.service.store.take(call.key.key_id, per_minute, call.now)
    if wait:
        refuse("rate_limited", headers=(("retry-after", str(wait)),))


def _check_scope(call: Call, route: Route) -> None:
    if route.scope is None:
        return
    if route.scope not in call.key.scopes:
        refuse("scope_missing")


# after the credential check and before the handler, which then checks idempotency, validity and
# plan
CHECKS: tuple[Callable[[Call, Route], None], ...] = (_check_rate, _check_scope)
