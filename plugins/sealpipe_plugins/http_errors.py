"""Maps HTTP statuses and failed connections to errors.

Never quotes a response or an error's own text.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import Final

from sealpipe.plugin import (
    AccessDeniedError,
    BackendAuthError,
    NotConfiguredError,
    PluginError,
    SecretNotFoundError,
    UnavailableError,
    UnknownOutcomeError,
)
from sealpipe_plugins.http_reply import Reply

CHECK_FIRST: Final = "check there before you send it again"
"""The remedy if the outcome of a message is unknown."""

_RUN_AGAIN: Final = "run it again later"

Refusal = tuple[type[PluginError], str, str]
"""The meaning of a status: kind, reason and remedy."""
Refusals = Mapping[int, Refusal]

_DEFAULTS: Final[Refusals] = {
    401: (
        BackendAuthError,
        "refused the token",
        "check that it is complete, not expired, and for this system",
    ),
    403: (
        AccessDeniedError,
        "does not let this token do that",
        "grant it the permission named in the documentation",
    ),
    404: (
        SecretNotFoundError,
        "does not have it, or hides it from this token",
        "check the name and the token's permissions",
    ),
    410: (SecretNotFoundError, "no longer has it", "check the name"),
    413: (PluginError, "rejects the message as too long", "shorten it"),
}

_HOSTNAME_MISMATCH: Final = (62, 64)
"""OpenSSL's numbers for a certificate of another host or address (X509_V_ERR_HOSTNAME_MISMATCH,
_IP_ADDRESS_...).
"""


def explain_redirects(what: str, kind: type[PluginError] = SecretNotFoundError) -> Refusals:
    """Return an explanation for a redirect where a resource is addressed by its name."""
    return dict.fromkeys(
        (301, 302, 307, 308), (kind, f"says that {what} has moved", "use its current name")
    )


def require_success(reply: Reply, refusals: Refusals | None = None) -> Reply:
    """Return a 2xx reply.

    Raise an error for any other status: from `refusals`, otherwise by its usual meaning.
    """
    status, system = reply.status, reply.system
    if 200 <= status < 300:
        return reply
    if status in (refusals or {}):
        kind, reason, remedy = (refusals or {})[status]
        raise kind(f"{system} {reason} ({status})", remedy=remedy)
    if status in (429, 503):
        raise UnavailableError(
            f"{system} asks to try again later ({status})",
            remedy=_RUN_AGAIN,
            retry_after=reply.retry_after,
        )
    if status >= 500 or status == 408:
        # A gateway may send this although the system behind it has processed the request.
        if reply.writes:
            raise UnknownOutcomeError(
                f"{system} failed after the message was sent ({status})", remedy=CHECK_FIRST
            )
        raise UnavailableError(
            f"{system} failed ({status})", remedy=_RUN_AGAIN, retry_after=reply.retry_after
        )
    if 300 <= status < 400:
        raise NotConfiguredError(
            f"{system} responded with a redirect ({status}), which is never followed",
            remedy="set its current address",
        )
    kind, reason, remedy = _DEFAULTS.get(status, (PluginError, "refused the message", ""))
    raise kind(f"{system} {reason} ({status})", remedy=remedy)


def require_answer(reply: Reply) -> Reply:
    """Return a reply that says something about the request.

    Raise the error of a redirect, and of one to try again.
    """
    if 300 <= reply.status < 400 or reply.status in (408, 429) or reply.status >= 500:
        return require_success(reply)
    return reply


NAME_CA: Final = "name the CA's file in SEALPIPE_CA_FILE"


def connect_error(
    error: BaseException, system: str, host: str, untrusted_remedy: str = NAME_CA
) -> PluginError:
    """Return the error for a failed connection.

    `host` includes the port. `untrusted_remedy` is the remedy for a certificate that is not
    trusted.
    """
    host_name = f"{system} at {host}"
    for cause in iter_causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            if cause.verify_code in _HOSTNAME_MISMATCH:
                return NotConfiguredError(
                    f"{host_name} has a certificate for another host",
                    remedy="check the host's name",
                )
            return NotConfiguredError(
                f"{host_name} has a certificate from an authority that is not trusted here",
                remedy=untrusted_remedy,
            )
        if type(cause).__name__ == "ProxyError":
            if "407" in str(cause):
                return NotConfiguredError(
                    f"the proxy to {host_name} requires a login",
                    remedy="write user and password into HTTPS_PROXY",
                )
            return UnavailableError(
                f"the proxy to {host_name} refused the connection", remedy="check HTTPS_PROXY"
            )
        if isinstance(cause, TimeoutError) or "Timeout" in type(cause).__name__:
            return UnavailableError(
                f"{host_name}: connection timed out", remedy="check the address and the network"
            )
        if isinstance(cause, socket.gaierror):
            return UnavailableError(
                f"{host_name}: the host does not exist",
                remedy="check the address, and the network's DNS",
            )
        if isinstance(cause, ssl.SSLError):
            return NotConfiguredError(
                f"{host_name} does not speak TLS, or only an unsafe version",
                remedy="check the port",
            )
        if isinstance(cause, OSError) and cause.strerror:
            return UnavailableError(
                f"{host_name}: {cause.strerror.lower()}", remedy="check the address and the network"
            )
    return UnavailableError(
        f"{host_name}: connection failed", remedy="check the address and the network"
    )


def iter_causes(error: BaseException) -> Iterator[BaseException]:
    """Iterate over an error and its causes."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
