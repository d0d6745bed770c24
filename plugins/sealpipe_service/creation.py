"""Create a share or a request, in the specification's order.

Idempotency header, replay, validation, plan, row.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from sqlite3 import IntegrityError
from typing import Any

from . import idempotency
from .context import Call, Service
from .json_bodies import Rule, read_object, rejected, require_json
from .responses import Response, as_json, refuse

Members = dict[str, Any]


def create(
    call: Call,
    table: str,
    rules: Mapping[str, Rule],
    *,
    extra_checks: Callable[[Call, Members], Mapping[str, str]],
    check_plan: Callable[[Call, Members], None],
    make_row: Callable[[Call, Members], Members],
    response_body: Callable[[Members], Mapping[str, object]],
) -> Response:
    """Create a row of `table`.

    Responds 201; to a replay 200 with exactly the bytes of the first response.

    `extra_checks` adds reasons that depend on the key, `check_plan` refuses, `make_row` returns the
    columns, and `response_body` the members of the response.
    """
    service, http_request = call.service, call.http_request
    name = idempotency.read_key(http_request.header("idempotency-key"))
    now = service.clock.timestamp()
    with idempotency.claim(
        service.in_flight, service.store, call.key.key_id, name, http_request.body, now
    ) as claim:
        if claim.replay is not None:
            return Response(200, claim.replay)
        service.reach(f"{table}.begun")
        require_json(http_request.header("content-type"))
        members = read_object(http_request.body)
        reasons = rejected(rules, members) | dict(extra_checks(call, members))
        if reasons:
            refuse("validation", reasons)
        members = {name: members.get(name) for name in rules}
        with service.store.transaction():
            check_plan(call, members)
            values = {
                "space": call.key.space,
                "owner": call.key.account,
                "key_id": call.key.key_id,
                "created_at": now,
            }
            values = insert(service, table, values | make_row(call, members))
            body = as_json(response_body(values))
            claim.record(service.store, body, now)
        service.reach(f"{table}.committed")
    return Response(201, body)


def insert(service: Service, table: str, values: Members) -> Members:
    """Store a row under a new short code; return the row with its code."""
    names = ("short_code", *values)
    statement = (
        # The column names are from this package.
        f"INSERT INTO {table} ({', '.join(names)}) VALUES "  # noqa: S608
        f"({', '.join(':' + name for name in names)})"
    )
    while True:
        code = base64.urlsafe_b64encode(service.token_bytes(9)).decode("ascii")
        try:
            service.store.change(statement, {**values, "short_code": code})
        except IntegrityError as error:
            if "short_code" not in str(error):
                raise
            continue  # already in use: draw another one
        return {**values, "short_code": code}
