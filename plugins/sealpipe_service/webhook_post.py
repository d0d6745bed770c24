"""One delivery attempt: a POST on its own connection. No proxy, no redirects, limited time."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
from collections.abc import Mapping
from functools import cache
from urllib.parse import urlsplit

READ_SECONDS = 10.0
TOTAL_SECONDS = 10.0


class WebhookPost:
    """A delivery attempt, which any thread can end with `abort`."""

    def __init__(self, url: str, body: bytes, headers: Mapping[str, str]) -> None:
        parts = urlsplit(url)
        self._target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        self._body, self._headers = body, dict(headers)
        self._aborted = False
        host = parts.hostname or ""
        # Without a port, http.client would parse the end of an IPv6 address as one.
        self._connection = (
            http.client.HTTPSConnection(
                host, parts.port or 443, timeout=READ_SECONDS, context=_tls_context()
            )
            if parts.scheme == "https"
            else http.client.HTTPConnection(host, parts.port or 80, timeout=READ_SECONDS)
        )

    def send(self) -> int | str:
        """Send it; return the status, or the name of the error. Raises nothing."""
        timer = threading.Timer(TOTAL_SECONDS, self.abort)
        timer.daemon = True
        timer.start()
        try:
            self._connection.request("POST", self._target, self._body, self._headers)
            status = self._connection.getresponse().status
            # http.client would accept truncated headers as complete
            return TimeoutError.__name__ if self._aborted else status
        except (
            OSError,
            http.client.HTTPException,
            ValueError,
        ) as error:  # ValueError: a host that cannot be encoded
            return type(error).__name__
        finally:
            timer.cancel()
            self._connection.close()

    def abort(self) -> None:
        """End the attempt now."""
        self._aborted = True
        sock = self._connection.sock
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


@cache
def _tls_context() -> ssl.SSLContext:
    # not ssl.create_default_context, which obeys SSLKEYLOGFILE
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_default_certs()
    return context
