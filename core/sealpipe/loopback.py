"""Which hosts are this machine: the one answer for the service, for every backend and for proxies."""

from __future__ import annotations

import re
from typing import Final

_OCTET: Final = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4: Final = re.compile(rf"127(?:\.{_OCTET}){{3}}")


def is_loopback(host: str) -> bool:
    """Whether a host can only mean this machine: `localhost`, `::1`, and 127.0.0.1 to 127.255.255.255 in full.

    Other spellings (127.1, 2130706433, 0x7f.1, ::ffff:127.0.0.1, 0.0.0.0, names below localhost) are not taken:
    resolvers disagree about them. `host` is as a URL parser gives it: in lower case, without brackets.
    """
    return host in ("localhost", "::1") or _IPV4.fullmatch(host) is not None


def is_cleartext(scheme: str, host: str) -> bool:
    """Whether what is sent there could be read on the way: anything but https, to any other machine."""
    return scheme != "https" and not (scheme == "http" and is_loopback(host))
