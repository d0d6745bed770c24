"""Why nothing was sent: each reason reads differently, and says what to do. Nothing of an error's own text is told."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

from sealpipe.plugin import NotConfiguredError, PluginError, UnavailableError

_OTHER_HOST = 62
"""OpenSSL's number for a certificate that is another host's (X509_V_ERR_HOSTNAME_MISMATCH)."""
_OTHER_ADDRESS = 64


def not_sent(error: BaseException, system: str, host: str) -> PluginError:
    """The error for people. `host` is where it was going, a port with it."""
    at = f"{system} at {host}"
    for each in chain(error):
        if isinstance(each, ssl.SSLCertVerificationError):
            if each.verify_code in (_OTHER_HOST, _OTHER_ADDRESS):
                return NotConfiguredError(f"{at} shows a certificate for another host", remedy="check the host's name")
            return NotConfiguredError(
                f"{at} shows a certificate that nobody trusted here has signed",
                remedy="name the CA's file in SEALPIPE_CA_FILE",
            )
        if type(each).__name__ == "ProxyError":
            if "407" in str(each):
                return NotConfiguredError(
                    f"the proxy on the way to {at} wants a login", remedy="write user and password into HTTPS_PROXY"
                )
            return UnavailableError(f"the proxy on the way to {at} refused the connection", remedy="check HTTPS_PROXY")
        if isinstance(each, TimeoutError) or "Timeout" in type(each).__name__:
            return UnavailableError(
                f"{at}: no connection came about in time", remedy="check the address and the network"
            )
        if isinstance(each, socket.gaierror):
            return UnavailableError(f"{at}: there is no such host", remedy="check the address, and the network's DNS")
        if isinstance(each, ssl.SSLError):
            return NotConfiguredError(f"{at} speaks no TLS there, or none that is safe", remedy="check the port")
        if isinstance(each, OSError) and each.strerror:
            return UnavailableError(f"{at}: {each.strerror.lower()}", remedy="check the address and the network")
    return UnavailableError(f"{at}: no connection came about", remedy="check the address and the network")


def chain(error: BaseException) -> Iterator[BaseException]:
    """An error and what is behind it."""
    each: BaseException | None = error
    while each is not None:
        yield each
        each = each.__cause__ or each.__context__
