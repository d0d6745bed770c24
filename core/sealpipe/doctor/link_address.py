"""Where links lead: whether anything answers there. A connection is made and ended; nothing is asked for."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from sealpipe.client.plugin_connection import ProxyError, connected
from sealpipe.client.trust import proxy_for, tls_context
from sealpipe.doctor.finding import Finding, doubtful, failed, fine
from sealpipe.errors import ConnectError, SettingError

CHECK = "link address"
TIMEOUT = 10.0
"""Seconds for the connection."""

_LEADS_NOWHERE = "check SEALPIPE_LINK_BASE_URL: recipients could not open a link"
_PERHAPS = "recipients may reach it all the same: this machine's way out may be closed"


def findings(link_base_url: str, ca_file: Path | None, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Connect, with TLS where the address has it. No request is sent: no code, no fragment, no redirect."""
    parts = urlsplit(link_base_url)
    host = f"{parts.scheme}://{parts.netloc}"
    proxy = None
    try:
        proxy = proxy_for(link_base_url)
        connected(link_base_url, partial(tls_context, environ, ca_file), proxy, TIMEOUT, TIMEOUT).close()
    except SettingError as error:
        yield doubtful(CHECK, f"{host} was not tried: {error.message}", error.remedy)
    except ProxyError as error:
        yield doubtful(CHECK, f"{host}: the proxy answered {error}", _PERHAPS)
    except TimeoutError:
        yield doubtful(CHECK, f"{host} did not answer within {TIMEOUT:g} seconds", _PERHAPS)
    except (OSError, ValueError) as error:  # ValueError: a name that no host can have
        if proxy is not None and not isinstance(error, ssl.SSLError):
            yield doubtful(CHECK, f"{host} was not reached through the proxy: {_why(error)}", _PERHAPS)
            return
        yield failed(CHECK, ConnectError(f"{host} leads nowhere: {_why(error)}", remedy=_LEADS_NOWHERE))
    else:
        through = "" if proxy is None else ", through the proxy"
        yield fine(CHECK, f"{host} can be reached{through}")


def _why(error: OSError | ValueError) -> str:
    """In words of ours, the system's and TLS's: nobody's from outside."""
    if isinstance(error, socket.gaierror):
        return "no host has that name" if error.errno == socket.EAI_NONAME else "its name could not be looked up"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({error.reason or 'no TLS there'})"
    if isinstance(error, OSError):
        return os.strerror(error.errno) if error.errno else "the connection ended"
    return "no host can have that name"
