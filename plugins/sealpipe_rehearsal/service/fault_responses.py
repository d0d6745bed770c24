"""Faults of the answer: the service's own, spoilt, or another in its place (see `faults`)."""

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
    """The head breaks off."""
    head = head_of(await exchange.answer())
    exchange.ends_with(head[: len(head) // 2])


async def half_body(exchange: Exchange) -> None:
    """The body breaks off: its head promised more."""
    answer = await exchange.answer()
    exchange.ends_with(head_of(answer) + answer.body[: len(answer.body) // 2])


async def bad_json(exchange: Exchange) -> Response:
    """Half of the JSON, framed as if it were all."""
    answer = await exchange.answer()
    return _with(answer, bytes(answer.body[: len(answer.body) // 2]))


async def empty_body(exchange: Exchange) -> Response:
    """The status, and no body."""
    return _with(await exchange.answer(), b"")


async def body(exchange: Exchange, text: str, base64: str) -> Response:
    """The status with another body."""
    return _with(await exchange.answer(), content(text, base64))


async def oversize(exchange: Exchange, size: int) -> Response:
    """The right JSON behind many blanks."""
    answer = await exchange.answer()
    return _with(answer, bytes(answer.body).rjust(size))


async def members(exchange: Exchange, change: Mapping[str, object], drop: list[str]) -> Response:
    """The JSON object with some members changed, others left out."""
    answer = await exchange.answer()
    try:
        told = json.loads(bytes(answer.body))
    except ValueError:
        return answer
    if not isinstance(told, dict):
        return answer
    kept = {name: value for name, value in {**told, **change}.items() if name not in drop}
    return _with(answer, json.dumps(kept).encode("ascii"))


async def gzipped(exchange: Exchange) -> Response:
    """The right answer in an encoding."""
    answer = await exchange.answer()
    return _with(answer, gzip.compress(bytes(answer.body)), {"content-encoding": "gzip"})


def _with(answer: Response, whole: bytes, further: Mapping[str, str] | None = None) -> Response:
    kept = {name: value for name, value in answer.headers.items() if name != "content-length"}
    return Response(whole, answer.status_code, {**kept, **(further or {})})


async def answer(exchange: Exchange, status: int, text: str, base64: str, headers: Mapping[str, str]) -> Response:  # noqa: ARG001  # all have one shape
    """Another answer than the service's."""
    return Response(b"" if status in _NO_BODY else content(text, base64), status, dict(headers))


async def html(exchange: Exchange, status: int, headers: Mapping[str, str]) -> Response:
    """A proxy's page."""
    return await answer(exchange, status, PAGE, "", {**HTML, **headers})


async def error(
    exchange: Exchange, status: int, code: int, message: str, data: Mapping[str, object], headers: Mapping[str, str]
) -> Response:
    """A refusal in the service's own envelope (specification: Errors)."""
    envelope: dict[str, object] = {"success": False, "message": message, "error_code": code}
    if data:
        envelope["additional_data"] = dict(data)
    return await answer(exchange, status, json.dumps(envelope), "", {**JSON, **headers})


async def fail(exchange: Exchange) -> Response:
    """500/42 or 500/11 from within: where what is asked for is not there, that is still said first."""
    with exchange.made_to_fail():
        return await exchange.answer()


async def rate_limit(exchange: Exchange, retry_after: int | str | None) -> Response:
    """429/107."""
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    return await error(exchange, 429, 107, "Rate limit exceeded", {}, headers)


async def unauthorized(exchange: Exchange) -> Response:
    """The gateway's 401, which is not in the envelope."""
    return await answer(exchange, 401, '{"message":"Unauthorized"}', "", JSON)


async def redirect(exchange: Exchange, status: int, location: str) -> Response:
    """Elsewhere."""
    return await answer(exchange, status, "", "", {"location": location})
