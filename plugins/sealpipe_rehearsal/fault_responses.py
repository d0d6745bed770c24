"""Faults of the response: they change the service's own response, or replace it (see `faults`)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping

from starlette.responses import Response

from .fault_connections import content
from .fault_exchange import Exchange, head_of

JSON = {"content-type": "application/json"}
HTML = {"content-type": "text/html"}
PAGE = "<!DOCTYPE html><title>Bad Gateway</title><h1>Bad Gateway</h1>"
_NO_BODY = (204, 304)


async def half_head(exchange: Exchange) -> None:
    """Send half of the head, then close."""
    head = head_of(await exchange.response())
    exchange.end_with(head[: len(head) // 2])


async def half_body(exchange: Exchange) -> None:
    """Send the head and half of the body, then close."""
    response = await exchange.response()
    exchange.end_with(head_of(response) + response.body[: len(response.body) // 2])


async def bad_json(exchange: Exchange) -> Response:
    """Send half of the JSON, with a matching Content-Length."""
    response = await exchange.response()
    return _replace_body(response, bytes(response.body[: len(response.body) // 2]))


async def empty_body(exchange: Exchange) -> Response:
    """Send the status without a body."""
    return _replace_body(await exchange.response(), b"")


async def body(exchange: Exchange, text: str, base64: str) -> Response:
    """Send the status with a different body."""
    return _replace_body(await exchange.response(), content(text, base64))


async def oversize(exchange: Exchange, size: int) -> Response:
    """Send the right JSON after many blanks."""
    response = await exchange.response()
    return _replace_body(response, bytes(response.body).rjust(size))


async def members(exchange: Exchange, change: Mapping[str, object], drop: list[str]) -> Response:
    """Send the JSON object with changed and dropped members."""
    response = await exchange.response()
    try:
        decoded = json.loads(bytes(response.body))
    except ValueError:
        return response
    if not isinstance(decoded, dict):
        return response
    remaining = {name: value for name, value in {**decoded, **change}.items() if name not in drop}
    return _replace_body(response, json.dumps(remaining).encode("ascii"))


async def gzipped(exchange: Exchange) -> Response:
    """Send the right response, compressed with gzip."""
    response = await exchange.response()
    return _replace_body(
        response, gzip.compress(bytes(response.body)), {"content-encoding": "gzip"}
    )


def _replace_body(
    response: Response, body: bytes, extra_headers: Mapping[str, str] | None = None
) -> Response:
    headers = {name: value for name, value in response.headers.items() if name != "content-length"}
    return Response(body, response.status_code, {**headers, **(extra_headers or {})})


async def replace_response(
    exchange: Exchange,  # noqa: ARG001  # every fault has this parameter
    status: int,
    text: str,
    base64: str,
    headers: Mapping[str, str],
) -> Response:
    """Send a different response instead of the service's own."""
    return Response(b"" if status in _NO_BODY else content(text, base64), status, dict(headers))


async def html(exchange: Exchange, status: int, headers: Mapping[str, str]) -> Response:
    """Send an HTML page, like a proxy."""
    return await replace_response(exchange, status, PAGE, "", {**HTML, **headers})


async def error(
    exchange: Exchange,
    status: int,
    code: int,
    message: str,
    data: Mapping[str, object],
    headers: Mapping[str, str],
) -> Response:
    """Send a refusal in the service's own envelope (specification: Errors)."""
    envelope: dict[str, object] = {"success": False, "message": message, "error_code": code}
    if data:
        envelope["additional_data"] = dict(data)
    return await replace_response(exchange, status, json.dumps(envelope), "", {**JSON, **headers})


async def fail(exchange: Exchange) -> Response:
    """Fail inside the handler with 500/42 or 500/11: a 404 still takes precedence."""
    with exchange.next_call_fails():
        return await exchange.response()


async def rate_limit(exchange: Exchange, retry_after: int | str | None) -> Response:
    """429/107."""
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    return await error(exchange, 429, 107, "Rate limit exceeded", {}, headers)


async def unauthorized(exchange: Exchange) -> Response:
    """Send the gateway's 401, which has no error envelope."""
    return await replace_response(exchange, 401, '{"message":"Unauthorized"}', "", JSON)


async def redirect(exchange: Exchange, status: int, location: str) -> Response:
    """Redirect to another URL."""
    return await replace_response(exchange, status, "", "", {"location": location})
