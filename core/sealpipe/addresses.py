"""Where a service of one's own listens, and where it is reached."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from sealpipe.errors import SettingError, UsageError, quote_input
from sealpipe.parsing import DEFAULT_PORTS, check_http_url, parse_port


def parse_public_url(text: str) -> str:
    """Check where a service is reached: scheme, host and port, which it is called by."""
    form = "https://HOST or https://HOST:PORT"
    url = check_http_url("the public URL", text, "every credential", form)
    parts = urlsplit(url)
    if parts.path:
        raise SettingError("the public URL has a path", remedy=f"write it as {form}")
    return url


def describe_other_port(public_url: str, port: int) -> str | None:
    """Say that a service which nothing stands before listens on another port than it is called at;
    None if it does not.
    """
    parts = urlsplit(public_url)
    called = parts.port or DEFAULT_PORTS[parts.scheme]
    if called == port:
        return None
    return (
        f"clients and links come to port {called} ({public_url}), and it listens on port "
        f"{port}: forward one to the other, or make --listen and --public-url agree"
    )


def parse_listen_address(text: str) -> tuple[str, int]:
    """Parse `ADDRESS:PORT`, an IP address of this machine, one of IPv6 in brackets."""
    host, colon, port = text.rpartition(":")
    try:
        address = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        address = None
    if not colon or address is None or (address.version == 6) != host.startswith("["):
        raise UsageError(
            "the address is not an IP address and a port",
            remedy="write it as 127.0.0.1:8080, 0.0.0.0:8080 or [::1]:8080",
        )
    return str(address), parse_port(port)


def parse_network(text: str) -> str:
    """Check a network of IP addresses, such as 10.0.0.0/8, or one address."""
    try:
        return str(ipaddress.ip_network(text))
    except ValueError:
        pass
    raise UsageError(
        f"{quote_input(text)} is not a network", remedy="write it as 10.0.0.0/8 or 192.0.2.7"
    )
