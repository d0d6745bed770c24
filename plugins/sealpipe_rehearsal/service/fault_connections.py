"""Faults of the connection: each is a function of an `Exchange` and its parameters (see `faults`)."""

from __future__ import annotations

from base64 import b64decode

from starlette.responses import Response

from .fault_exchange import Exchange

_CHUNK = 0x10000


async def reset(exchange: Exchange) -> None:
    """RST."""
    exchange.reset()


async def close(exchange: Exchange) -> None:
    """The end, in good order."""
    exchange.end_with()


async def refuse(exchange: Exchange, seconds: float) -> None:
    """RST, and nobody listens for a while."""
    exchange.connection.refuse(seconds)
    exchange.reset()


async def hang(exchange: Exchange) -> None:
    """Nothing."""
    exchange.connection.take_over()
    await exchange.connection.wait_closed()


async def no_fault(exchange: Exchange) -> Response:
    """Nothing."""
    return await exchange.response()


async def delay(exchange: Exchange, seconds: float) -> Response | None:
    """Time, then all is well."""
    return None if await exchange.connection.wait_closed(seconds) else await exchange.response()


async def garbage(exchange: Exchange, text: str, base64: str) -> None:
    """Bytes that are not HTTP."""
    exchange.end_with(content(text, base64))


async def interim(exchange: Exchange) -> Response:
    """Two answers that announce the real one."""
    exchange.connection.write(b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
    return await exchange.response()


async def drip_head(exchange: Exchange, every: float) -> None:
    """A header without an end."""
    await _drip(exchange, b"HTTP/1.1 201 Created\r\nX-Drip: ", every)


async def drip_body(exchange: Exchange, every: float) -> None:
    """A body of which each byte takes its time."""
    head = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
    await _drip(exchange, head + b'{"short_code":"', every)


async def _drip(exchange: Exchange, data: bytes, every: float) -> None:
    exchange.connection.take_over()
    exchange.connection.write(data)
    while not await exchange.connection.wait_closed(every):
        exchange.connection.write(b"d")


async def endless(exchange: Exchange) -> None:
    """A body without an end, as fast as it goes."""
    exchange.connection.take_over()
    exchange.connection.write(
        b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    while not await exchange.connection.wait_closed(0):
        exchange.connection.write(b"%x\r\n" % _CHUNK + b" " * _CHUNK + b"\r\n")
        await exchange.connection.drain()


def content(text: str, base64: str) -> bytes:
    """What is to be sent: bytes where they were given, else the text."""
    return b64decode(base64) if base64 else text.encode("utf-8")
