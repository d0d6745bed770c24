"""Addresses: which are of this machine or of a network, and who calls, behind proxies or not."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from starlette.types import Scope

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

SITE = 64
"""Bits of an IPv6 address that tell strangers apart: whoever has one of them has all below."""


@dataclass(frozen=True)
class Caller:
    """Who calls; whether the peer is a proxy, and whether it is a program of this machine."""

    address: Address
    is_proxy: bool
    is_here: bool


_HERE = ipaddress.IPv4Address("127.0.0.1")
_CALLER = "sealpipe.caller"


def find_caller(scope: Scope, proxies: Sequence[Network]) -> Caller:
    """Return who calls, behind proxies of these networks or not: found once for a scope."""
    if _CALLER not in scope:
        scope[_CALLER] = _find_caller(scope, proxies)
    caller: Caller = scope[_CALLER]
    return caller


def _find_caller(scope: Scope, proxies: Sequence[Network]) -> Caller:
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


def name_stranger(address: Address | None, proxies: Sequence[Network]) -> str | None:
    """Return under which name a caller is counted; None for this machine and for proxies.

    A proxy that names nobody is no stranger: whatever it passes on would count together.
    """
    if address is None or address.is_loopback or is_inside(address, proxies):
        return None
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(ipaddress.ip_network((address, SITE), strict=False))


def read_networks(texts: Sequence[str]) -> Sequence[Network]:
    """Parse networks, whose texts were checked."""
    return [ipaddress.ip_network(each) for each in texts]


def is_inside(address: Address, networks: Sequence[Network]) -> bool:
    """Return whether an address is in one of the networks."""
    return any(address in network for network in networks)


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, by its name or its address."""
    address = read_address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


@lru_cache(1024)
def read_address(text: str) -> Address | None:
    """Parse an address, in IPv6 also one of IPv4 or with a zone, which is dropped; None if it is
    none.
    """
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
