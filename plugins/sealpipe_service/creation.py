"""Create a share or a request, in the specification's order.

Idempotency header, replay, validation, plan, row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import idempotency
from .context import Call
from .database.decisions import QuotaError
from .json_bodies import SHARE, SHARE_EXTENDED, Rule, read_object, rejected, require_json
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
    most: int | None = None,
) -> Response:
    """Create a row of `table`.

    Responds 201; to a replay 200 with exactly the bytes of the first response.

    `extra_checks` adds reasons that depend on the key, `check_plan` refuses, `make_row` returns the
    columns, and `response_body` the members of the response. A space has at most `most` that are
    usable.
    """
    service, http_request = call.service, call.http_request
    name = idempotency.read_key(http_request.header("idempotency-key"))
    caller = (call.key.key_id, call.auth_secret)
    with idempotency.claim(service.store, *caller, name, http_request.body) as creating:
        if creating.replay is not None:
            return Response(200, creating.replay)
        service.reach(f"{table}.begun")
        require_json(http_request.header("content-type"))
        members = read_object(http_request.body)
        reasons = rejected(rules, members) | dict(extra_checks(call, members))
        if reasons:
            refuse("validation", reasons)
        members = {name: members.get(name) for name in rules}
        check_plan(call, members)
        values = _EMPTY[table] | {
            "space": call.key.space,
            "owner": call.key.account,
            "key_id": call.key.key_id,
            "created_at": call.now,
        }
        values |= make_row(call, members)
        try:
            body = creating.create(
                table,
                values,
                lambda code: as_json(response_body({**values, "short_code": code})),
                service.new_code,
                most=most,
            )
        except QuotaError:
            refuse("quota_used_up")
        service.reach(f"{table}.committed")
    return Response(201, body)


_EMPTY: Mapping[str, Members] = {
    "shares": dict.fromkeys((*SHARE_EXTENDED.keys() - SHARE.keys(), "ended_at", "ended_by")),
    "requests": {"received": 0, "ended_at": None, "ended_by": None},
}
"""Columns that a new row has besides those of `make_row`."""
