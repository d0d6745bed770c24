"""Answers that a caller need not be sent twice: ETag and If-None-Match (gaps: newer endpoints)."""

from __future__ import annotations

import hashlib

from .context import Call
from .refusals import Answer, as_json


def tagged(call: Call, value: object) -> Answer:
    """The value with its ETag, or 304 where the caller has that very one."""
    body = as_json(value)
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    known = [each.strip().removeprefix("W/") for each in (call.incoming.header("if-none-match") or "").split(",")]
    headers = (("etag", tag), ("cache-control", "private, no-cache"))
    return Answer(304, b"", headers) if tag in known or "*" in known else Answer(200, body, headers)
