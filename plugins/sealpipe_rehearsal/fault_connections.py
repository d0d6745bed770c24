"""Faults of the connection.

Each is a function of an `Exchange` and its parameters (see `faults`).
"""

from __future__ import annotations

from base64 import b64decode

from starlette.responses import Response

from .fault_exchange import Exchange

_CHUNK = 0x10000


async def reset(exchange: Exchange) -> None:
    """Reset the connection."""
    exchange.reset()


async def close(exchange: Exchange) -> None:
    """Close the connection without a response."""
    exchange.end_with()


async def refuse(exchange: Exchange, seconds: float) -> None:
    """Reset the connection and refuse new ones for a while."""
    exchange.connection.refuse(seconds)
    exchange.reset()


async def hang(exchange: Exchange) -> None:
    """Send nothing until the client disconnects."""
    exchange.connection.take_over()
    await exchange.connection.wait_closed()


async def no_fault(exchange: Exchange) -> Response:
    """Inject nothing."""
    return await exchange.response()


async def delay(exchange: Exchange, seconds: float) -> Response | None:
    """Delay the response."""
    return None if await exchange.connection.wait_closed(seconds) else await exchange.response()


async def garbage(exchange: Exchange, text: str, base64: str) -> None:
    """Send bytes that are not HTTP."""
    exchange.end_with(content(text, base64))


async def interim(exchange: Exchange) -> Response:
    """Send 102 and 103 before the response."""
    exchange.connection.write(
        b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
    )
    return await exchange.response()


async def drip_head(exchange: Exchange, every: float) -> None:
    """Send an endless header, slowly."""
    await _drip(exchange, b"HTTP/1.1 201 Created\r\nX-Drip: ", every)


async def drip_body(exchange: Exchange, every: float) -> None:
    """Send an endless body, slowly."""
    head = (
        b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
    )
    await _drip(exchange, head + b'{"short_code":"', every)


async def _drip(exchange: Exchange, data: bytes, every: float) -> None:
    exchange.connection.take_over()
    exchange.connection.write(data)
    while not await exchange.connection.wait_closed(every):
        exchange.connection.write(b"d")


async def endless(exchange: Exchange) -> None:
    """Send an endless body at full speed."""
    exchange.connection.take_over()
    exchange.connection.write(
        b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nTransfer-Encoding: "
        b"chunked\r\n\r\n"
    )
    while not await exchange.connection.wait_closed(0):
        exchange.connection.write(b"%x\r\n" % _CHUNK + b" " * _CHUNK + b"\r\n")
        await exchange.connection.drain()


def content(text: str, base64: str) -> bytes:
    """Return the bytes to send: `base64` if given, otherwise `text`."""
    return b64decode(base64) if base64 else text.encode("utf-8")
