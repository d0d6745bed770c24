"""One HTTP/1.1 exchange over a socket, for backends of many small calls.

One by requests or httpx costs many times the CPU, and threads gain nothing there (docs/contributing/benchmarks.md,
`vault-cpu`).
It does what such calls need: out, a body of a known length; in, one that is measured, chunked, or ends with the line.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Mapping
from http.client import BadStatusLine, HTTPException, IncompleteRead, RemoteDisconnected
from typing import Final, NamedTuple

LIMIT: Final = 32 * 1024 * 1024
"""Bytes of an answer's body that are read."""
LONGEST: Final = 60.0
"""Seconds after which an answer that still drips is given up."""

_LINE, _LINES = 65536, 200
_STATUS: Final = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?: [^\r\n]*)?\r?\n")
_HEADER: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\x00]*?)[ \t]*\r?\n")
_CHUNK: Final = re.compile(rb"([0-9A-Fa-f]{1,8})(?:[ \t]*;[^\r\n]*)?[ \t]*\r?\n")


class Answer(NamedTuple):
    """What came back. The names of headers are in small letters; one that came twice has both, with a comma."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Line:
    """A connection, for one thread at a time. `used` tells that it has carried an exchange, `open` that it can more."""

    def __init__(self, sock: socket.socket) -> None:
        self.used = False
        self.open = True
        self._sock = sock
        self._reader = sock.makefile("rb")
        self._end = 0.0

    def ask(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        """Send a request and take its whole answer. Raises OSError and HTTPException; then the line is of no use."""
        head = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        if body is not None:
            head.append(f"Content-Length: {len(body)}")
        if any(not line.isascii() or not line.isprintable() for line in head):
            raise ValueError("a header cannot have these characters")
        self.open = False  # until all of the answer is here
        self._sock.sendall("\r\n".join([*head, "", ""]).encode("ascii") + (body or b""))
        self._end = time.monotonic() + LONGEST
        answer, keep = self._answer(head=method == "HEAD")
        self.used, self.open = True, keep
        return answer

    def hurry(self, seconds: float) -> None:
        """From now on no step takes longer."""
        self._sock.settimeout(seconds)

    def close(self) -> None:
        """Hang up."""
        self.open = False
        self._reader.close()
        self._sock.close()

    def _answer(self, *, head: bool) -> tuple[Answer, bool]:
        status, newer = self._status()
        while status < 200:
            if status == 101:
                raise BadStatusLine("101")
            self._headers()
            status, newer = self._status()
        headers = self._headers()
        keep = newer and "close" not in headers.get("connection", "").lower()
        if head or status in (204, 304):
            return Answer(status, headers, b""), keep
        coding, length = headers.get("transfer-encoding"), headers.get("content-length")
        if coding is not None:
            if coding.lower() != "chunked" or length is not None:
                raise HTTPException("an answer in a form that nobody asked for")
            return Answer(status, headers, self._chunks()), keep
        if length is None:
            return Answer(status, headers, self._rest()), False
        if not re.fullmatch("[0-9]{1,9}", length):
            raise HTTPException("a length that is none")
        return Answer(status, headers, self._exactly(int(length))), keep

    def _status(self) -> tuple[int, bool]:
        line = self._readline()
        if not line:
            raise RemoteDisconnected("hung up without an answer")
        match = _STATUS.fullmatch(line)
        if match is None:
            raise BadStatusLine("not HTTP/1.1")
        return int(match[2]), match[1] == b"1"

    def _headers(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for _ in range(_LINES):
            line = self._readline()
            if line in (b"\r\n", b"\n"):
                return found
            match = _HEADER.fullmatch(line)
            if match is None:
                raise HTTPException("a header that is none")
            name, value = match[1].decode("ascii").lower(), match[2].decode("latin-1")
            found[name] = f"{found[name]}, {value}" if name in found else value
        raise HTTPException("more headers than any answer has")

    def _chunks(self) -> bytes:
        body = bytearray()
        while True:
            match = _CHUNK.fullmatch(self._readline())
            if match is None:
                raise HTTPException("a chunk that is none")
            size = int(match[1], 16)
            if size == 0:
                self._headers()
                return bytes(body)
            if len(body) + size > LIMIT:
                raise HTTPException("longer than any answer is")
            body += self._exactly(size)
            if self._readline() not in (b"\r\n", b"\n"):
                raise HTTPException("a chunk without an end")

    def _exactly(self, length: int) -> bytes:
        body = self._rest(length)
        if len(body) < length:
            raise IncompleteRead(b"")
        return body

    def _rest(self, length: int = LIMIT + 1) -> bytes:
        """So many bytes, or as many as come before the end."""
        if length > LIMIT + 1:
            raise HTTPException("longer than any answer is")
        body = b""
        while len(body) < length and (piece := self._reader.read1(length - len(body))):
            body += piece
            self._in_time()
        if len(body) > LIMIT:
            raise HTTPException("longer than any answer is")
        return body

    def _readline(self) -> bytes:
        self._in_time()
        return self._reader.readline(_LINE)

    def _in_time(self) -> None:
        if time.monotonic() > self._end:
            raise TimeoutError("the answer still drips")
