"""All of /v1: the checks in their order, then the route (specification: Endpoints, Authentication)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import extended, mcp, requests, shares
from .context import Call, Handler, Incoming, Service
from .credentials import find_key, mark, read_bearer, secret_matches
from .log import Note
from .responses import Answer, RefusalError, refuse, refuse_at_gateway

CODE = "{shortCode}"


@dataclass(frozen=True)
class Route:
    """A row of the specification's table of endpoints. Without a `scope` it needs none, or says itself which."""

    method: str
    path: tuple[str, ...]
    scope: str | None
    handler: Handler

    def codes(self, method: str, segments: tuple[str, ...]) -> tuple[str, ...] | None:
        """The short codes in a path; None where the route is not this one."""
        if method != self.method or len(segments) != len(self.path):
            return None
        pairs = list(zip(self.path, segments, strict=True))
        if any(want not in (CODE, got) for want, got in pairs):
            return None
        return tuple(got for want, got in pairs if want == CODE)


# No other routes exist. DELETE without a short code is one of the specification's refusals (44), not a
# route that is not there; with a trailing slash its code is empty.
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

# JSON-RPC, where each tool has a scope of its own; the protocol has two more methods on that path.
MCP_ROUTES = (
    Route("POST", ("mcp",), None, mcp.post),
    Route("GET", ("mcp",), None, mcp.not_offered),
    Route("DELETE", ("mcp",), None, mcp.not_offered),
)
# Not in the specification (gaps: newer endpoints).
EXTENDED_ROUTES = (
    Route("GET", ("shares", CODE, "access-log"), extended.SCOPE, extended.access_log),
    Route("GET", ("capabilities",), None, extended.capabilities),
)


def handle(service: Service, incoming: Incoming) -> Answer:
    """Answer a call under /v1."""
    try:
        call = _authenticated(service, incoming)
        route, codes = _routed(incoming, extended=service.extended)
        for check in CHECKS:
            check(call, route)
        return route.handler(Call(service, incoming, call.key, call.account, codes))
    except RefusalError as refused:
        return refused.answer


def _authenticated(service: Service, incoming: Incoming) -> Call:
    """The credential, checked anew on every call: revoking takes effect on the next one."""
    header = incoming.header("authorization")
    if header is None:
        refuse_at_gateway("no_authorization")
    presented = read_bearer(header, service.tag)
    if presented is None:
        refuse_at_gateway("not_usable")
    key = find_key(service.store, presented.key_id)
    matches = secret_matches(key, presented.auth_secret)
    if presented.three_parts:
        if key is not None:
            # Recorded, and left usable in its two parts: revoking is its owner's to do, once a
            # replacement is in place. Kept even where the auth secret was wrong: the custody part was out.
            mark(service.store, key.key_id, "compromised", service.clock.timestamp())
            service.log.note(Note(service.clock.now(), "key.compromised", key.key_id))
        refuse_at_gateway("not_usable")
    if key is None or not matches or key.revoked_at is not None:
        refuse_at_gateway("not_usable")
    now = service.clock.timestamp()
    account = service.entitlements.of(service.store, key.space, now)
    if not account.api_access:
        refuse_at_gateway("not_usable")
    mark(service.store, key.key_id, "used", now)
    return Call(service, incoming, key, account)


def _routed(incoming: Incoming, *, extended: bool) -> tuple[Route, tuple[str, ...]]:
    for route in (*ROUTES, *MCP_ROUTES, *(EXTENDED_ROUTES if extended else ())):
        codes = route.codes(incoming.method, incoming.segments[1:])
        # An empty code names nothing; only DELETE has a refusal of its own for it.
        if codes is not None and (all(codes) or route.method == "DELETE"):
            return route, codes
    return refuse_at_gateway("no_route")


def _rate(call: Call, _: Route) -> None:
    per_minute = call.account.limits.requests_per_minute or 0
    wait = call.service.rates.take(call.key.key_id, per_minute, call.service.clock.timestamp())
    if wait:
        refuse("rate_limited", headers=(("retry-after", str(wait)),))


def _scope(call: Call, route: Route) -> None:
    if route.scope is None:
        return
    if route.scope not in call.key.scopes:
        refuse("scope_missing")


# After the credential, before the handler: which itself goes on with idempotency, validation, plan.
CHECKS: tuple[Callable[[Call, Route], None], ...] = (_rate, _scope)
