"""Server-sent events, as far as one answer needs them (WHATWG HTML, Server-sent events)."""

from __future__ import annotations

import re
from collections.abc import Iterator


def messages(stream: bytes) -> Iterator[bytes]:
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
