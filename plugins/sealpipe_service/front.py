"""Who calls: the peer of the connection, or whom the proxy before the service names.

Without TLS of our own nobody but a proxy that was named, or a program of this machine, is answered.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Front:
    """An application behind proxies of these networks.

    The peers of a `socket` of this machine (one with a path) are proxies, too.
    """

    def __init__(self, application: ASGIApp, proxies: Sequence[str], *, has_tls: bool) -> None:
        self._application = application
        self._proxies = read_networks(proxies)
        self._has_tls = has_tls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            caller = find_caller(scope, self._proxies)
            if not (self._has_tls or caller.is_proxy or caller.is_here):
                refusal = PlainTextResponse("use https\n", 403, {"connection": "close"})
                await refusal(scope, receive, send)
                return
            scope = {**scope, "client": (str(caller.address), 0)}
        await self._application(scope, receive, _secured(send) if self._has_tls else send)


def _secured(send: Send) -> Send:
    """Tell browsers to come by https alone, as whoever has a certificate does."""

    async def send_secured(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], _HSTS]}
        await send(message)

    return send_secured


_HSTS = (b"strict-transport-security", b"max-age=31536000")


@dataclass(frozen=True)
class Caller:
    """Who calls; whether the peer is a proxy, and whether it is a program of this machine."""

    address: Address
    is_proxy: bool
    is_here: bool


_HERE = ipaddress.IPv4Address("127.0.0.1")


def find_caller(scope: Scope, proxies: Sequence[Network]) -> Caller:
    """Return who calls, behind proxies of these networks or not."""
    peer = read_address(scope["client"][0]) if scope["client"] else None
    is_proxy = peer is None or is_inside(peer, proxies)
    named = [
        value.decode("latin-1")
        for name, value in scope["headers"]
        if is_proxy and name == b"x-forwarded-for"
    ]
    address = find_client(peer, ",".join(named), proxies) or _HERE
    return Caller(address, is_proxy, peer is None or peer.is_loopback)


def find_client(peer: Address | None, forwarded: str, proxies: Sequence[Network]) -> Address | None:
    """Return who called a trusted peer: the last address in X-Forwarded-For that is no proxy's.

    What stands before it was written by whoever that is, and may be made up.
    """
    client = peer
    for text in reversed(forwarded.split(",")):
        address = read_address(text.strip())
        if address is None:
            break
        client = address
        if not is_inside(address, proxies):
            break
    return client


def read_networks(texts: Sequence[str]) -> Sequence[Network]:
    """Parse networks, whose texts were checked."""
    return [ipaddress.ip_network(each) for each in texts]


def is_inside(address: Address, networks: Sequence[Network]) -> bool:
    """Return whether an address is in one of the networks."""
    return any(address in network for network in networks)


def read_address(text: str) -> Address | None:
    """Parse an address, in IPv6 also one of IPv4; None if it is none."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
