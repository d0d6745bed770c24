"""Requests that two programs could read in two ways, and bodies in chunks that are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

ODD: Final[Mapping[str, str]] = {
    "a target with a host": "GET http://{host}/healthz HTTP/1.1|Host: {host}",
    "a target that is no path": "GET healthz HTTP/1.1|Host: {host}",
    "an asterisk": "OPTIONS * HTTP/1.1|Host: {host}",
    "a tunnel": "CONNECT {host} HTTP/1.1|Host: {host}",
    "no host": "GET /healthz HTTP/1.1",
    "two hosts": "GET /healthz HTTP/1.1|Host: {host}|Host: {host}",
    "a folded line": "GET /healthz HTTP/1.1|Host: {host}|X-One: a|  b",
    "a folded host": "GET /healthz HTTP/1.1|Host:| {host}",
    "a blank before the colon": "GET /healthz HTTP/1.1|Host: {host}|Content-Length : 0",
    "no name": "GET /healthz HTTP/1.1|Host: {host}|: x",
    "no colon": "GET /healthz HTTP/1.1|Host: {host}|x",
    "two blanks": "GET  /healthz HTTP/1.1|Host: {host}",
    "another version": "GET /healthz HTTP/3.0|Host: {host}",
    "no version": "GET /healthz|Host: {host}",
    "a NUL": "GET /healthz HTTP/1.1|Host: {host}|X-One: \0",
    "a CR in a value": "GET /healthz HTTP/1.1|Host: {host}|X-One: a\rb",
    "length and coding": (
        "POST /nothing HTTP/1.1|Host: {host}|Content-Length: 4|Transfer-Encoding: chunked"
    ),
    "two lengths": "POST /nothing HTTP/1.1|Host: {host}|Content-Length: 0|Content-Length: 4",
    "one length twice": "POST /nothing HTTP/1.1|Host: {host}|Content-Length: 0|Content-Length: 0",
    "lengths in a line": "POST /nothing HTTP/1.1|Host: {host}|Content-Length: 0, 4",
    "a signed length": "POST /nothing HTTP/1.1|Host: {host}|Content-Length: +0",
    "a length in hex": "POST /nothing HTTP/1.1|Host: {host}|Content-Length: 0x4",
    "two codings": "POST /nothing HTTP/1.1|Host: {host}|Transfer-Encoding: chunked, identity",
    "an unknown coding": "POST /nothing HTTP/1.1|Host: {host}|Transfer-Encoding: xchunked",
    "a coding of HTTP/1.0": "POST /nothing HTTP/1.0|Host: {host}|Transfer-Encoding: chunked",
    "a coding of HTTP/1.0, first": "POST /nothing HTTP/1.0|Transfer-Encoding: chunked|Host: {host}",
    "a coding twice": (
        "POST /nothing HTTP/1.1|Host: {host}|Transfer-Encoding: chunked|Transfer-Encoding: chunked"
    ),
    "a long head": f"GET /healthz HTTP/1.1|Host: {{host}}|X-One: {'x' * 20_000}",
}
"""`|` is the end of a line, and `{host}` what is served."""

CHUNKS: Final[Sequence[bytes]] = (
    b"-1\r\n",
    b"0x4\r\nbody\r\n0\r\n\r\n",
    b" 4\r\nbody\r\n0\r\n\r\n",
    b"4\nbody\n0\n\n",
    b"4\r\nbodyXX0\r\n\r\n",
    b"3\r\nbody\r\n0\r\n\r\n",
    b"fffffffffffffffffffff\r\nx",
    b"4;" + b"x" * 20_000,
    b"0\r\nX-One: a\r\n b: c\n\n",
    b"0\r\nX-One: a\r\n\r\n",
    b"0\r\nX-One: a\n\n",
    b"0\r\n\n",
    b"4\r\nbody\r\n0\r\n\n",
)
