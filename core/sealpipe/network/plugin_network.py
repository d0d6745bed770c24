"""The network that plugins get: with the client's certificates, proxies and deadlines."""

from __future__ import annotations

import atexit
import os
import ssl
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from sealpipe.custody_gate import CustodyGate
from sealpipe.errors import NotConfiguredError, SettingError
from sealpipe.network.connections import EXCHANGE_DEADLINE
from sealpipe.network.service_network import (
    find_proxy,
    list_certificates,
    make_backend_context,
    make_tls_context,
)
from sealpipe.network.sockets import connect, make_guarded_tls
from sealpipe.plugin.context import DEADLINE

if TYPE_CHECKING:
    import socket

    import httpx

TIMEOUT = 30.0
"""Seconds that a plugin's connection, and each read of a response, may take."""


class PluginNetwork:
    """The core's `sealpipe.plugin.Network`."""

    def __init__(
        self, ca_file: Path | None, gate: CustodyGate | None = None, deadline: float | None = None
    ) -> None:
        self._ca_file = ca_file
        self._gate = gate or CustodyGate()
        self._deadline = DEADLINE if deadline is None else deadline
        self._contexts: dict[Path | None, ssl.SSLContext] = {}
        self._lock = threading.Lock()

    def http(
        self,
        *,
        authorities: str | None = None,
        certificate: tuple[Path, Path] | None = None,
        ca_file: Path | None = None,
    ) -> httpx.Client:
        """Return the client that all plugins of a run share; with an argument, a separate one."""
        if authorities is None and certificate is None and ca_file is None:
            return self._http
        from sealpipe.network.plugin_client import make_plugin_client

        with _translate_errors():
            context = make_backend_context(
                os.environ, (self._ca_file, ca_file), authorities, certificate
            )
        make_context = partial(_make_tls_context, self._ca_file)
        return make_plugin_client(
            lambda: context, make_context, _find_proxy, TIMEOUT, self._deadline, self._gate
        )

    def connect(
        self, url: str, *, ca_file: Path | None = None, timeout: float | None = None
    ) -> socket.socket:
        """Connect a socket with our certificates and proxy."""
        with _translate_errors():
            context, proxy = partial(self._get_context, ca_file), self.proxy(url)
            return connect(url, context, proxy, timeout or TIMEOUT, self._deadline, self._gate)

    @contextmanager
    def exchange(self, seconds: float | None = None) -> Iterator[None]:
        """Give all network use of the thread in the block one deadline."""
        limit = self._deadline if seconds is None else min(seconds, self._deadline)
        with EXCHANGE_DEADLINE.hold_until(EXCHANGE_DEADLINE.compute_end(limit)):
            yield

    def proxy(self, url: str) -> str | None:
        """Return the proxy for a URL from the environment; None without one, and for loopback."""
        return _find_proxy(url)

    def tls_context(self) -> ssl.SSLContext:
        """Return a TLS context for protocols other than HTTP."""
        context = _make_tls_context(self._ca_file)
        context.sslsocket_class = make_guarded_tls(self._gate)
        return context

    def ca_bundle(self) -> Path | None:
        """Return a PEM file for SDKs that take nothing else, or None if the system's CAs do."""
        return self._bundle

    def close(self) -> None:
        """Close the connections of the client that plugins share."""
        client: httpx.Client | None = vars(self).pop("_http", None)
        if client is not None:
            client.close()

    def _get_context(self, ca_file: Path | None) -> ssl.SSLContext:
        with self._lock:  # several threads connect, and reading a bundle takes long
            if ca_file not in self._contexts:
                with _translate_errors():
                    self._contexts[ca_file] = make_tls_context(os.environ, self._ca_file, ca_file)
            return self._contexts[ca_file]

    @cached_property
    def _http(self) -> httpx.Client:
        from sealpipe.network.plugin_client import make_plugin_client

        make_context = partial(_make_tls_context, self._ca_file)
        return make_plugin_client(
            make_context, make_context, _find_proxy, TIMEOUT, self._deadline, self._gate
        )

    @cached_property
    def _bundle(self) -> Path | None:
        certificate_files = list_certificates(os.environ)
        if self._ca_file is None and not certificate_files:
            return None
        files = [
            *(certificate_files or [_find_system_bundle()]),
            *([self._ca_file] if self._ca_file else []),
        ]
        try:
            content = b"\n".join(file.read_bytes() for file in files)
        except OSError:
            raise NotConfiguredError(
                "the certificates to trust cannot be read",
                remedy=(
                    "check SEALPIPE_CA_FILE, SSL_CERT_FILE and SSL_CERT_DIR: PEM files that "
                    "this user can read"
                ),
            ) from None
        descriptor, name = tempfile.mkstemp(prefix="sealpipe-ca-", suffix=".pem")
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        atexit.register(partial(Path(name).unlink, missing_ok=True))
        return Path(name)


def _find_system_bundle() -> Path:
    cafile = ssl.get_default_verify_paths().cafile
    if cafile is None:
        import certifi

        cafile = certifi.where()
    return Path(cafile)


def _find_proxy(url: str) -> str | None:
    with _translate_errors():
        return find_proxy(url)


def _make_tls_context(ca_file: Path | None) -> ssl.SSLContext:
    with _translate_errors():
        return make_tls_context(os.environ, ca_file)


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise an invalid network setting as a plugin's error.

    Of any other error, users see only the type.
    """
    try:
        yield
        return
    except SettingError as error:
        error_for_plugin = NotConfiguredError(error.message, remedy=error.remedy)
    raise error_for_plugin
