"""JSON-RPC 2.0 as one HTTP answer carries it: an object, or an event stream that has it somewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from sealpipe.api import codec
from sealpipe.api.operation import Answer
from sealpipe.api.refusals import escape_text
from sealpipe.errors import ProtocolError, ServiceError, ToolError, UsageError


def read_events(stream: bytes) -> Iterator[bytes]:
    """The data of each message, in order. Comments, other kinds of events and empty ones are passed by.

    An event that the stream ends in the middle of is none, unless a line end closed its last line.
    """
    lines = re.split(rb"\r\n|\n|\r", stream.removeprefix(b"\xef\xbb\xbf"))
    kind = b""
    data: list[bytes] = []
    for line in [*lines[:-1], b""]:
        if not line:
            if any(data) and kind in (b"", b"message"):
                yield b"\n".join(data)
            kind, data = b"", []
            continue
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            data.append(value)
        elif name == b"event":
            kind = value


def encode(message: Mapping[str, Any]) -> bytes:
    """A message as bytes. UsageError for what JSON has no form for."""
    try:
        return json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError):  # UnicodeEncodeError is a ValueError
        pass
    raise UsageError(
        "an argument of the tool cannot be written as JSON", remedy="give text, numbers, true, false, lists"
    )


def _is_stream(answer: Answer) -> bool:
    return answer.headers.get("content-type", "").partition(";")[0].strip().lower() == "text/event-stream"


def find_response(answer: Answer, number: int) -> dict[str, Any] | None:
    """The message of an answer that is the response to request `number`. What else a stream has is passed by."""
    if not _is_stream(answer):
        return _ours(codec.parse_object(answer), number)
    if answer.flaw:
        raise ProtocolError(f"the service's answer {answer.flaw}", status=answer.status)
    for data in read_events(answer.body):
        with suppress(ProtocolError):  # what is no message of ours may be anything
            found = _ours(codec.parse_object(Answer(answer.status, {}, data)), number)
            if found is not None:
                return found
    return None


def _ours(message: dict[str, Any], number: int) -> dict[str, Any] | None:
    known = message.get("jsonrpc") == "2.0" and "method" not in message
    given = message.get("id")
    same = given == number and isinstance(given, int) and not isinstance(given, bool)
    # An error that could not tell which request it is about has null, or none.
    lost = given is None and "error" in message
    return message if known and (same or lost) and ("result" in message) != ("error" in message) else None


def is_streamed(answer: Answer, number: int) -> bool:
    """Whether a stream, as far as it came, has the response to request `number`: nothing after it matters."""
    return _is_stream(answer) and find_response(answer, number) is not None


def is_error_response(answer: Answer, number: int) -> bool:
    """Whether a status that is no success carries a JSON-RPC error: then that tells more than the status."""
    if not 400 <= answer.status < 500 or answer.status in (401, 403, 429):
        return False
    try:
        found = find_response(answer, number)
    except ProtocolError:
        return False
    return found is not None and "error" in found


def response_error(told: object, status: int) -> ServiceError:
    """The exception for the error of a response."""
    members = told if isinstance(told, dict) else {}
    code, said = members.get("code"), members.get("message")
    if not isinstance(code, int) or isinstance(code, bool) or not isinstance(said, str):
        return ProtocolError("the service's answer has an error that is not a JSON-RPC error", status=status)
    return ToolError(f"the tool endpoint refused ({code}): {escape_text(said)}", status=status, error_code=code)
