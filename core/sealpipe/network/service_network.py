"""The one way to the network.

Connection pools, proxies and trusted certificates, and the network of both clients.

httpcore logs what it reads: not during our own exchanges.
"""

from __future__ import annotations

import logging
import os
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import httpcore

from sealpipe.api.operation import Failure, Operation, Response
from sealpipe.cancellation import Cancellation
from sealpipe.errors import SettingError
from sealpipe.network.connections import Deadline, DeadlineBackend
from sealpipe.network.exchange import (
    Redactor,
    ResponseBuffer,
    SendWatch,
    Service,
    build_request,
    describe_failure,
)
from sealpipe.network.rate_limiter import RateLimiter
from sealpipe.parsing import is_loopback

_is_our_exchange = ContextVar("_is_our_exchange", default=False)


def _is_loggable(_: logging.LogRecord) -> bool:
    return not _is_our_exchange.get()


# httpcore logs everything that a peer sends.
logging.getLogger("httpcore.http11").addFilter(_is_loggable)


MAX_CONNECTIONS: Final = 10
"""Connections to the service at once, and calls of an `AsyncClient` that are at work at once."""

watch: Callable[[str, str, int, float, int], object] | None = None
"""Gets each request of a plugin: method, host, status, seconds, bytes sent (`--debug`)."""


@contextmanager
def silence_httpcore() -> Iterator[None]:
    """Keep httpcore from logging what this exchange reads.

    Other uses of httpcore in the program are still logged.
    """
    token = _is_our_exchange.set(True)
    try:
        yield
    finally:
        _is_our_exchange.reset(token)


class ServiceNetwork:
    """Sends operations over blocking sockets; safe to use from several threads."""

    def __init__(self, service: Service, watch: Callable[[], SendWatch] = SendWatch) -> None:
        self._service = service
        self._make_watch = watch
        self._deadline = Deadline()
        self.limiter = RateLimiter()
        self._redactor = Redactor(service.gate)
        self._pool = self._make_pool()

    def send(
        self, operation: Operation[Any], timeout: float, cancellation: Cancellation | None = None
    ) -> Response | Failure:
        """Send the operation once, and return its response or failure, within `timeout` seconds.

        Whoever sends waits for `limiter` before. `cancellation` ends the exchange earlier, by a
        failure.
        """
        cancellation = cancellation or Cancellation()
        end = time.monotonic() + timeout
        if operation.own_connection:
            with closing(self._make_pool()) as pool:
                result = self._exchange(pool, operation, end, cancellation)
        else:
            result = self._exchange(self._pool, operation, end, cancellation)
        return self._redactor.redact(result, operation.body_in_clear)

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def _make_pool(self) -> httpcore.ConnectionPool:
        backend = DeadlineBackend(
            self._deadline, loopback_only=self._service.base_url.startswith("http://")
        )
        return httpcore.ConnectionPool(network_backend=backend, **make_pool_options(self._service))

    def _exchange(
        self,
        pool: httpcore.ConnectionPool,
        operation: Operation[Any],
        end: float,
        cancellation: Cancellation,
    ) -> Response | Failure:
        watch = self._make_watch()
        request = build_request(self._service, operation, end - time.monotonic(), watch.note)
        try:
            with silence_httpcore(), self._deadline.hold_until(end, cancellation):
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


def make_pool_options(service: Service) -> dict[str, Any]:
    """Return the options of a connection pool to the service.

    Certificates are read only for https://.
    """
    options: dict[str, Any] = {"max_connections": MAX_CONNECTIONS, "http1": True, "http2": False}
    if service.base_url.startswith("https://"):
        options["ssl_context"] = make_tls_context(os.environ, service.ca_file)
    options["proxy"] = make_pool_proxy(find_proxy(service.base_url), options.get("ssl_context"))
    return options


def find_proxy(url: str) -> str | None:
    """Return the proxy for a URL from the environment; None without one, and for loopback.

    Raises SettingError.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_loopback(host) or not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    # slow to import, and most environments have no proxy
    from urllib.request import (  # type: ignore[attr-defined]
        getproxies_environment,
        proxy_bypass_environment,
    )

    if proxy_bypass_environment(host):
        return None
    proxies = getproxies_environment()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if proxy is None:
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not _is_valid_proxy(proxy):
        raise SettingError(
            "the environment's proxy is not an http:// or https:// address",
            remedy="check HTTPS_PROXY",
        )
    return proxy


def make_pool_proxy(proxy: str | None, context: ssl.SSLContext | None) -> httpcore.Proxy | None:
    """Return a proxy as connection pools take it, with the login separate from the address.

    `context` is for https:// proxies. Without it httpcore makes its own, which obeys SSLKEYLOGFILE
    and ignores the CA file.
    """
    if proxy is None:
        return None
    parts = urlsplit(proxy)
    url = httpcore.URL(
        scheme=parts.scheme, host=_encode_host(parts.hostname or ""), port=parts.port, target="/"
    )
    login = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return httpcore.Proxy(
        url,
        auth=None if login is None else (login[0].encode(), login[1].encode()),
        ssl_context=context if parts.scheme == "https" else None,
    )


def _is_valid_proxy(address: str) -> bool:
    try:
        parts = urlsplit(address)
        # Reading an invalid port raises.
        has_host = bool(_encode_host(parts.hostname or "")) and parts.port != 0
    except ValueError:
        return False
    return (
        has_host
        and parts.scheme in ("http", "https")
        and address.isprintable()
        and " " not in address
    )


def _encode_host(host: str) -> str:
    """Return a host name in ASCII, as DNS and HTTP take it. Raises ValueError."""
    return host if host.isascii() else host.encode("idna").decode("ascii")


def make_tls_context(environ: Mapping[str, str], *ca_files: Path | None) -> ssl.SSLContext:
    """Make a context that checks certificates by the system's CAs and those in `ca_files`.

    SSLKEYLOGFILE is ignored: it would write the session keys to a file. Raises SettingError.
    """
    context = _make_empty_context()
    try:
        _load_system(context, environ)
        for ca_file in ca_files:
            if ca_file is not None:
                context.load_verify_locations(cafile=ca_file)
    except (OSError, ssl.SSLError):
        raise SettingError(
            "the certificates to trust cannot be read",
            remedy="check SEALPIPE_CA_FILE, SSL_CERT_FILE, SSL_CERT_DIR and what the store names: "
            "PEM files that this user can read",
        ) from None
    return context


def make_backend_context(
    environ: Mapping[str, str],
    ca_files: Iterable[Path | None],
    authorities: str | None,
    certificate: tuple[Path, Path] | None,
) -> ssl.SSLContext:
    """Make a context for one backend. Raises SettingError.

    `authorities` is PEM text that is trusted instead of the system's CAs, `ca_files` are trusted in
    addition. `certificate` names the files of the client certificate and its key.
    """
    if authorities is None:
        context = make_tls_context(environ, *ca_files)
    else:
        context = _make_empty_context()
        try:
            context.load_verify_locations(cadata=authorities)
            for ca_file in ca_files:
                if ca_file is not None:
                    context.load_verify_locations(cafile=ca_file)
        except (OSError, ssl.SSLError):
            raise SettingError(
                "the certificates to trust are not PEM", remedy="check its CA setting"
            ) from None
    if certificate is not None:
        try:
            context.load_cert_chain(*certificate)
        except (OSError, ssl.SSLError):
            raise SettingError(
                "the client certificate and its key cannot be read, or do not belong together",
                remedy="check both: PEM, and the key without a passphrase",
            ) from None
    return context


def _make_empty_context() -> ssl.SSLContext:
    # create_default_context() would obey SSLKEYLOGFILE.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _load_system(context: ssl.SSLContext, environ: Mapping[str, str]) -> None:
    configured = environ.get("SSL_CERT_FILE"), environ.get("SSL_CERT_DIR")
    if any(configured):
        context.load_verify_locations(cafile=configured[0] or None, capath=configured[1] or None)
        return
    default_paths = ssl.get_default_verify_paths()
    if default_paths.capath and _is_hashed_folder(default_paths.capath):
        # OpenSSL looks up each CA here when needed; it reads a bundle whole, which takes 24 to 36
        # ms.
        context.load_verify_locations(capath=default_paths.capath)
    elif default_paths.cafile:
        context.load_verify_locations(cafile=default_paths.cafile)
    else:
        import certifi

        context.load_verify_locations(cafile=certifi.where())


def list_certificates(environ: Mapping[str, str]) -> list[Path]:
    """List the certificate files that SSL_CERT_FILE and SSL_CERT_DIR name."""
    file, folders = (
        environ.get("SSL_CERT_FILE"),
        (environ.get("SSL_CERT_DIR") or "").split(os.pathsep),
    )
    hashed = [each for folder in folders if folder for each in sorted(Path(folder).glob("*.[0-9]"))]
    return [*([Path(file)] if file else []), *hashed]


def _is_hashed_folder(folder: str) -> bool:
    """Return whether OpenSSL finds certificates in a folder: their names look like 5ed36f99.0."""
    try:
        with os.scandir(folder) as entries:
            return any(entry.name.endswith(".0") for entry in entries)
    except OSError:
        return False
