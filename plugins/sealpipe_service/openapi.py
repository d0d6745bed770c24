"""The API as an OpenAPI 3.1 document, generated from the tables that the service itself uses.

Paths, methods and scopes come from `gateway.ROUTES`, bodies from the rules and the checks' schemas,
refusals from `REFUSALS` and `GATEWAY`. Only the successful responses of each handler are written by
hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from . import extended, gateway, requests, shares
from .checks import SCHEMAS, Schema
from .context import Handler
from .json_bodies import ENCRYPTION_TYPE, REQUEST, SHARE, SHARE_EXTENDED, Rule
from .listing import DEFAULT_LIMIT, MAX_LIMIT
from .openapi_schemas import (
    CAPABILITIES,
    COUNT,
    JSON,
    LOG,
    LOG_QUERY,
    TEXT,
    TIME,
    array_of,
    object_with,
    or_null,
    page_of,
)
from .responses import GATEWAY, REFUSALS


@dataclass(frozen=True)
class HandlerSpec:
    """A handler's successful responses by status, its own refusals, the rules of its body.

    Whether it is paginated.
    """

    answers: Mapping[int, Schema]
    refusals: tuple[str, ...] = ()
    body: Mapping[str, Rule] = field(default_factory=dict)
    paged: bool = False
    query: Mapping[str, Schema] = field(default_factory=dict)


_CREATES = (
    "validation",
    "idempotency_key_missing",
    "idempotency_other_body",
    "idempotency_in_flight",
)
_SHARE = object_with(short_code=TEXT, expired_at=or_null(TIME))
_NEW_SHARE = object_with(
    short_code=TEXT, expired_at=or_null(TIME), custody={"enum": ["none", "stored", "failed"]}
)
_REQUEST = object_with(short_code=TEXT, expired_at=or_null(TIME), public_key=or_null(TEXT))
_NEW_REQUEST = object_with(short_code=TEXT, expired_at=TIME, public_key=TEXT)
_ENDED_REQUEST = object_with(short_code=TEXT, expired_at={"type": "null"})
_SUBMISSION = object_with(
    short_code=TEXT, data=TEXT, created_at=TIME, encryption_type={"const": ENCRYPTION_TYPE}
)
_DAYS = array_of(object_with(date={"type": "string", "format": "date"}, count=COUNT))
_STATS = object_with(
    shares=object_with(active=COUNT, expired=COUNT, total_viewed=COUNT),
    daily_views={**_DAYS, "minItems": shares.DAYS, "maxItems": shares.DAYS},
)

HANDLERS: Mapping[Handler, HandlerSpec] = {
    shares.create: HandlerSpec(
        {201: _NEW_SHARE, 200: _NEW_SHARE},
        (*_CREATES, "no_view_protection", "quota_used_up"),
        SHARE,
    ),
    shares.list_shares: HandlerSpec({200: page_of("shares", _SHARE)}, paged=True),
    shares.show: HandlerSpec({200: _SHARE}, ("share_not_found",)),
    shares.delete: HandlerSpec(
        {200: object_with(success={"const": True}, message={"const": "ok"})},
        ("no_short_code", "share_not_found", "share_not_expired"),
    ),
    requests.create: HandlerSpec({201: _NEW_REQUEST, 200: _NEW_REQUEST}, _CREATES, REQUEST),
    requests.list_requests: HandlerSpec(
        {200: page_of("requests", _REQUEST)}, ("request_failed",), paged=True
    ),
    requests.show: HandlerSpec(
        {200: {"anyOf": [_REQUEST, _ENDED_REQUEST]}}, ("request_not_found",)
    ),
    requests.submissions: HandlerSpec(
        {
            200: object_with(
                submissions=array_of(_SUBMISSION),
                count=COUNT,
                skipped_not_end_to_end_encrypted=COUNT,
            )
        },
        ("request_not_found",),
    ),
    requests.delete: HandlerSpec(
        {200: object_with(short_code=TEXT, outcome={"enum": ["expired", "deleted"]})},
        ("no_short_code", "request_not_found", "request_failed"),
    ),
    shares.show_stats: HandlerSpec({200: _STATS}),
    extended.access_log: HandlerSpec(
        {200: LOG}, ("validation", "share_not_found"), query=LOG_QUERY
    ),
    extended.capabilities: HandlerSpec({200: CAPABILITIES}),
}

_EVERY_CALL = (
    "no_authorization",
    "not_usable",
    "too_long",
    "broken",
    "unavailable",
    "rate_limited",
    "scope_missing",
)
_RETRY_AFTER = {"Retry-After": {"required": True, "schema": {"type": "integer", "minimum": 1}}}
_HEADERS = {"rate_limited": _RETRY_AFTER, "unavailable": _RETRY_AFTER}
_CODE = {
    "name": "shortCode",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "minLength": 1},
}
_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": True,
    "schema": {"type": "string", "pattern": r"[^ \t]"},
}
_PAGING = [
    {"name": name, "in": "query", "schema": schema, "description": "An invalid value is corrected."}
    for name, schema in {
        "page": {"type": "integer", "minimum": 1, "default": 1},
        "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT},
    }.items()
]
_STATUS = {"name": "status", "in": "query", "schema": {"enum": ["active", "expired"]}}


def document(*, extended: bool = False) -> dict[str, Any]:
    """Return the document, without the tools, which are JSON-RPC.

    Its server is `/v1` on the same host.
    """
    paths: dict[str, dict[str, Any]] = {}
    for route in (*gateway.ROUTES, *(gateway.EXTENDED_ROUTES if extended else ())):
        spec = HANDLERS[route.handler]
        if extended and spec.body is SHARE:
            spec = replace(spec, body=SHARE_EXTENDED)
        operation = _operation(route, spec, [*_PAGING, *([_STATUS] if extended else [])])
        paths.setdefault("/" + "/".join(route.path), {})[route.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "Secret sharing, as served by sealpipe", "version": "1"},
        "servers": [{"url": "/v1"}],
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": {name: _refusal(name) for name in (*REFUSALS, *GATEWAY)},
        },
    }


def _operation(
    route: gateway.Route, spec: HandlerSpec, paging: list[dict[str, Any]]
) -> dict[str, Any]:
    has_code = gateway.CODE in route.path
    answers, refusals = spec.answers, spec.refusals
    if route.method == "DELETE" and not has_code:
        # Refused by the specification: not a bulk delete.
        answers, refusals = (
            {},
            ("no_short_code",),
        )
    elif has_code:
        refusals = (*refusals, "no_route")  # an empty code
    parameters = [
        *([_CODE] if has_code else []),
        *([_IDEMPOTENCY_KEY] if spec.body else []),
        *(paging if spec.paged else []),
        *({"name": name, "in": "query", "schema": schema} for name, schema in spec.query.items()),
    ]
    operation: dict[str, Any] = {
        "operationId": "_".join([route.method.lower(), *(part.strip("{}") for part in route.path)]),
        "summary": (route.handler.__doc__ or "").partition("\n")[0],
        "description": f"Scope: {route.scope or 'none'}",
        "responses": {
            **{str(status): _response("As asked", [schema]) for status, schema in answers.items()},
            **_refusals((*_EVERY_CALL, *refusals)),
        },
    }
    if parameters:
        operation["parameters"] = parameters
    if spec.body:
        operation["requestBody"] = {
            "required": True,
            "content": {JSON: {"schema": _body(spec.body)}},
        }
    return operation


def _body(rules: Mapping[str, Rule]) -> Schema:
    """Return the schema of a create body.

    Null counts as missing, and unknown members are ignored.
    """
    return {
        "type": "object",
        "properties": {
            name: SCHEMAS[rule.check] if rule.required else or_null(SCHEMAS[rule.check])
            for name, rule in rules.items()
        },
        "required": [name for name, rule in rules.items() if rule.required],
    }


def _refusal(name: str) -> Schema:
    if name in GATEWAY:
        return object_with(**dict.fromkeys(json.loads(GATEWAY[name].body), TEXT))
    members: dict[str, Schema] = {
        "success": {"const": False},
        "message": TEXT,
        "error_code": {"const": REFUSALS[name].error_code},
    }
    if name == "validation":
        members["additional_data"] = {"type": "object", "additionalProperties": TEXT}
    return object_with(**members)


def _refusals(names: Iterable[str]) -> dict[str, Any]:
    by_status: dict[int, list[str]] = {}
    for name in names:
        by_status.setdefault(
            REFUSALS[name].status if name in REFUSALS else GATEWAY[name].status, []
        ).append(name)
    return {
        str(status): _response(
            " or ".join(names),
            [{"$ref": f"#/components/schemas/{name}"} for name in names],
            {header: value for name in names for header, value in _HEADERS.get(name, {}).items()},
        )
        for status, names in sorted(by_status.items())
    }


def _response(
    description: str, schemas: list[Schema], headers: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    return {
        "description": description,
        "content": {JSON: {"schema": schema}},
        **({"headers": headers} if headers else {}),
    }
