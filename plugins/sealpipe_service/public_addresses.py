"""Which addresses a server sends webhooks to: public ones, and those that its operator allows.

The tables are those of IANA's registries for special purposes. What Python calls global differs
between its versions.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence

from .addresses import Address, is_inside, read_networks

Allows = Callable[[Address], bool]
"""Whether something may be sent to an address."""

_NOT_PUBLIC_4 = read_networks(
    [
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",  # also where clouds tell a machine its secrets
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    ]
)
_PUBLIC_6 = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_6 = read_networks(
    [
        "2001::/23",  # also Teredo, which carries addresses of IPv4
        "2001:db8::/32",
        "2002::/16",  # 6to4, which does, too
        "3fff::/20",
    ]
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def allow_all(_: Address) -> bool:
    """Allow every address, as a rehearsal does."""
    return True


def allow_public(networks: Sequence[str]) -> Allows:
    """Allow public addresses, and those in some networks."""
    more = read_networks(networks)
    return lambda address: is_inside(address, more) or is_public(address)


def is_public(address: Address) -> bool:
    """Return whether an address is one of the internet's, for one machine."""
    if isinstance(address, ipaddress.IPv4Address):
        return not is_inside(address, _NOT_PUBLIC_4)
    inner = address.ipv4_mapped
    if address in _NAT64:  # a public address, as a network without IPv4 names it
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if inner is not None:
        return is_public(inner)
    return address in _PUBLIC_6 and not is_inside(address, _NOT_PUBLIC_6)
