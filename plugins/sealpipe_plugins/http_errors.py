"""What an HTTP status or a failed connection means as an error. Quotes neither an answer nor an error's own text."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from sealpipe.plugin import (
    AccessDeniedError,
    BackendAuthError,
    NotConfiguredError,
    PluginError,
    SecretNotFoundError,
    UnavailableError,
    UnknownOutcomeError,
)

if TYPE_CHECKING:
    from sealpipe_plugins.http_api import Reply

CHECK_FIRST: Final = "check there before you send it again"
"""What to do where nobody knows whether a message was taken."""

_RETRY: Final = "run it again later"

Refusal = tuple[type[PluginError], str, str]
"""What a status means: kind, reason and remedy."""
Refusals = Mapping[int, Refusal]

_USUAL: Final[Refusals] = {
    401: (BackendAuthError, "refused the token", "check that it is complete, not expired, and this system's"),
    403: (AccessDeniedError, "does not let this token do that", "grant it the permission that the documentation names"),
    404: (
        SecretNotFoundError,
        "has no such thing, or hides it from this token",
        "check the name, and what the token may see",
    ),
    410: (SecretNotFoundError, "no longer has it", "check the name"),
    413: (PluginError, "does not take a message of this length", "shorten it"),
}

_OTHER_HOST: Final = (62, 64)
"""OpenSSL's numbers for a certificate of another host or address (X509_V_ERR_HOSTNAME_MISMATCH, _IP_ADDRESS_...)."""


def moved(what: str, kind: type[PluginError] = SecretNotFoundError) -> Refusals:
    """Return what a redirect means for something that is reached by its name."""
    return dict.fromkeys((301, 302, 307, 308), (kind, f"says that {what} has moved", "use its current name"))


def require_success(reply: Reply, refusals: Refusals | None = None) -> Reply:
    """Return a reply of 2xx; raise what any other status means, by `refusals` first, then by the usual meaning."""
    status, system = reply.status, reply.system
    if 200 <= status < 300:
        return reply
    if status in (refusals or {}):
        kind, why, remedy = (refusals or {})[status]
        raise kind(f"{system} {why} ({status})", remedy=remedy)
    if status in (429, 503):
        raise UnavailableError(
            f"{system} asks to try again later ({status})", remedy=_RETRY, retry_after=reply.retry_after
        )
    if status >= 500 or status == 408:
        # A gateway answers this, too, when the system behind it has done its work.
        if reply.writes:
            raise UnknownOutcomeError(f"{system} failed while it had the message ({status})", remedy=CHECK_FIRST)
        raise UnavailableError(f"{system} failed ({status})", remedy=_RETRY, retry_after=reply.retry_after)
    if 300 <= status < 400:
        raise NotConfiguredError(
            f"{system} answered with a redirect ({status}), which is never followed",
            remedy="set its current address",
        )
    kind, why, remedy = _USUAL.get(status, (PluginError, "refused the message", ""))
    raise kind(f"{system} {why} ({status})", remedy=remedy)


def connect_error(error: BaseException, system: str, host: str) -> PluginError:
    """Say why nothing was sent. `host` is where it was going, with its port."""
    at = f"{system} at {host}"
    for each in causes(error):
        if isinstance(each, ssl.SSLCertVerificationError):
            if each.verify_code in _OTHER_HOST:
                return NotConfiguredError(f"{at} has a certificate for another host", remedy="check the host's name")
            return NotConfiguredError(
                f"{at} has a certificate from an authority that is not trusted here",
                remedy="name the CA's file in SEALPIPE_CA_FILE",
            )
        if type(each).__name__ == "ProxyError":
            if "407" in str(each):
                return NotConfiguredError(
                    f"the proxy to {at} requires a login", remedy="write user and password into HTTPS_PROXY"
                )
            return UnavailableError(f"the proxy to {at} refused the connection", remedy="check HTTPS_PROXY")
        if isinstance(each, TimeoutError) or "Timeout" in type(each).__name__:
            return UnavailableError(f"{at}: connection timed out", remedy="check the address and the network")
        if isinstance(each, socket.gaierror):
            return UnavailableError(f"{at}: there is no such host", remedy="check the address, and the network's DNS")
        if isinstance(each, ssl.SSLError):
            return NotConfiguredError(f"{at} does not speak TLS, or no safe version of it", remedy="check the port")
        if isinstance(each, OSError) and each.strerror:
            return UnavailableError(f"{at}: {each.strerror.lower()}", remedy="check the address and the network")
    return UnavailableError(f"{at}: connection failed", remedy="check the address and the network")


def causes(error: BaseException) -> Iterator[BaseException]:
    """Iterate over an error and what caused it."""
    each: BaseException | None = error
    while each is not None:
        yield each
        each = each.__cause__ or each.__context__
