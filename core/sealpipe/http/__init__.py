"""The one way to the network: connection pools and proxies, redaction of responses, and the network for blocking code.

A service, or a proxy in between, may repeat our request in a message, a header or a page of its own. Nothing of that
is shown or handed on before our credentials are redacted. httpcore logs what it reads: not during our own exchanges.
"""

from __future__ import annotations

import logging
import os
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import httpcore

from sealpipe.api import Credential, Failure, Operation, Response
from sealpipe.errors import SettingError
from sealpipe.http.connections import Deadline, DeadlineBackend
from sealpipe.http.exchange import ResponseBuffer, SendWatch, build_request, describe_failure
from sealpipe.http.rate_limiter import RateLimiter, Ticket
from sealpipe.secret_scan import LARGE, REDACTED, SecretFinder
from sealpipe.values import is_loopback

if TYPE_CHECKING:
    from sealpipe.flows.session import Session

REDACTION_FLAW = "repeats the credential"


class Redactor:
    """Redacts every part of our credentials, in each encoding that `sealpipe.secret_scan` knows.

    Also redacts what follows our key id and a dot, and the beginning of a secret: it may be truncated.
    """

    def __init__(self, credential: Credential, previous: Credential | None = None) -> None:
        known = [each for each in (credential, previous) if each is not None]
        secrets = [secret for each in known for secret in (each.auth_secret, each.custody_secret) if secret is not None]
        self._needles = SecretFinder(secrets, names=known)

    def redact(self, result: Response | Failure) -> Response | Failure:
        """Return the result without the credentials. A body that still has one is dropped, and `flaw` says so."""
        if isinstance(result, Failure):
            return result._replace(detail=self._redact_text(result.detail))
        headers = {name: self._redact_text(value) for name, value in result.headers.items()}
        body = self._redact_bytes(result.body)
        if body is None:
            return replace(result, headers=headers, body=b"", flaw=REDACTION_FLAW)
        return replace(result, headers=headers, body=body)

    def _redact_text(self, text: str) -> str:
        redacted = self._redact_bytes(text.encode("utf-8", "surrogatepass"))
        return (REDACTED if redacted is None else redacted).decode("utf-8", "surrogatepass")

    def _redact_bytes(self, data: bytes) -> bytes | None:
        """Return the data without the credentials; None if one would still be there."""
        spans = self._needles.spans(data)
        if not spans and len(data) <= LARGE:
            return data
        parts, done = [], 0
        for start, end in spans:
            parts += [data[done:start], REDACTED]
            done = end
        redacted = b"".join([*parts, data[done:]])
        return None if self._needles.within(redacted) else redacted


_is_our_exchange = ContextVar("_in_our_exchange", default=False)


def _is_loggable(_: logging.LogRecord) -> bool:
    return not _is_our_exchange.get()


logging.getLogger("httpcore.http11").addFilter(_is_loggable)  # it logs everything that a peer sends


@contextmanager
def silence_httpcore() -> Iterator[None]:
    """Keep httpcore from logging what this exchange reads. Other uses of httpcore in the program are still logged."""
    token = _is_our_exchange.set(True)
    try:
        yield
    finally:
        _is_our_exchange.reset(token)


class ServiceNetwork:
    """Sends operations over blocking sockets; safe to use from several threads."""

    def __init__(self, session: Session, watch: Callable[[], SendWatch] = SendWatch) -> None:
        self._session = session
        self._make_watch = watch
        self._deadline = Deadline()
        self._limiter = RateLimiter()
        self._redactor = Redactor(session.credential, session.previous)
        self._pool = self._make_pool()

    def send(self, operation: Operation[Any], timeout: float) -> Response | Failure:
        """Send the operation once, and return what came back within `timeout` seconds."""
        end = time.monotonic() + timeout
        ticket = Ticket()
        for seconds in self._limiter.iterate_delays(ticket, end):
            time.sleep(seconds)
        if ticket.refusal is not None:
            return ticket.refusal
        if operation.own_connection:
            with closing(self._make_pool()) as pool:
                result = self._exchange(pool, operation, end)
        else:
            result = self._exchange(self._pool, operation, end)
        self._limiter.record(ticket, result)
        return self._redactor.redact(result)

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def _make_pool(self) -> httpcore.ConnectionPool:
        backend = DeadlineBackend(self._deadline, loopback_only=self._session.base_url.startswith("http://"))
        return httpcore.ConnectionPool(network_backend=backend, **make_pool_options(self._session))

    def _exchange(self, pool: httpcore.ConnectionPool, operation: Operation[Any], end: float) -> Response | Failure:
        watch = self._make_watch()
        request = build_request(self._session, operation, end - time.monotonic(), watch.note)
        try:
            with silence_httpcore(), self._deadline.hold_until(end):
                response = pool.handle_request(request)
                try:
                    buffer = ResponseBuffer(response, operation)
                    for piece in response.iter_stream():
                        if buffer.add(piece):
                            break
                finally:
                    response.close()
            return buffer.to_response()
        except Exception as error:
            failure = describe_failure(error, watch)
            if failure is None:
                raise
            return failure


def make_pool_options(session: Session) -> dict[str, Any]:
    """Return the options of a connection pool to the service. Certificates are read only for https://."""
    options: dict[str, Any] = {"max_connections": 10, "http1": True, "http2": False}
    if session.base_url.startswith("https://"):
        from sealpipe.http.tls import make_tls_context

        options["ssl_context"] = make_tls_context(os.environ, session.ca_file)
    options["proxy"] = make_pool_proxy(find_proxy(session.base_url), options.get("ssl_context"))
    return options


def find_proxy(url: str) -> str | None:
    """Return the proxy that the environment names for a URL; None for none, and for loopback. Raises SettingError."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_loopback(host) or not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    # Slow to import, and most environments name no proxy.
    from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

    if proxy_bypass_environment(host):
        return None
    proxies = getproxies_environment()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if proxy is None:
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not _is_valid_proxy(proxy):
        raise SettingError("the environment's proxy is not an http:// or https:// address", remedy="check HTTPS_PROXY")
    return proxy


def make_pool_proxy(proxy: str | None, context: ssl.SSLContext | None) -> httpcore.Proxy | None:
    """Return a proxy as connection pools take it, with the login separate from the address.

    `context` is for https:// proxies. Without it httpcore makes its own, which obeys SSLKEYLOGFILE and ignores the
    CA file.
    """
    if proxy is None:
        return None
    parts = urlsplit(proxy)
    url = httpcore.URL(scheme=parts.scheme, host=_encode_host(parts.hostname or ""), port=parts.port, target="/")
    login = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return httpcore.Proxy(
        url,
        auth=None if login is None else (login[0].encode(), login[1].encode()),
        ssl_context=context if parts.scheme == "https" else None,
    )


def _is_valid_proxy(address: str) -> bool:
    try:
        parts = urlsplit(address)
        has_host = bool(_encode_host(parts.hostname or "")) and parts.port != 0  # reading an invalid port raises
    except ValueError:
        return False
    return has_host and parts.scheme in ("http", "https") and address.isprintable() and " " not in address


def _encode_host(host: str) -> str:
    """Return a host name in ASCII, as DNS and HTTP take it. Raises ValueError."""
    return host if host.isascii() else host.encode("idna").decode("ascii")
