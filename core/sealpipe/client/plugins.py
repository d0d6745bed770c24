"""The registry of a client: with the user's config file, and with one way out for all plugins."""

from __future__ import annotations

import atexit
import os
import ssl
import tempfile
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from sealpipe.configuration import read_config, read_machine_config
from sealpipe.registry import Overseer, Registry
from sealpipe.registry.oversight import overseers

if TYPE_CHECKING:
    import httpx

TIMEOUT = 30.0
"""Seconds that a plugin's connection, and each read of its answer, may take."""


def registry(ca_file: str | Path | None = None) -> Registry:
    """A registry whose plugins trust what the client trusts. Nothing is read or made before it is needed."""
    network = cache(partial(PluginNetwork, None if ca_file is None else Path(ca_file)))
    return Registry(config=lambda: read_config(os.environ), network=network)


def overseeing() -> tuple[Overseer, ...]:
    """Policies and observers, by the user's config file and the machine's. Raises SettingError, NotConfigured."""
    return overseers(read_config(os.environ), read_machine_config())


class PluginNetwork:
    """`sealpipe.plugin.Network`: certificates and proxies as the client has them."""

    def __init__(self, ca_file: Path | None) -> None:
        self._ca_file = ca_file

    def http(self) -> httpx.Client:
        """One client for all plugins of a run."""
        return self._http

    def proxy(self, url: str) -> str | None:
        """The proxy that the environment names for an address; never one for loopback."""
        from sealpipe.client.trust import proxy_for

        return proxy_for(url)

    def ca_bundle(self) -> Path | None:
        """One PEM file for SDKs that take nothing else; None where the system's own certificates are meant."""
        return self._bundle

    @cached_property
    def _http(self) -> httpx.Client:
        from sealpipe.client.plugin_http import plugin_client

        return plugin_client(self._ca_file, TIMEOUT)

    @cached_property
    def _bundle(self) -> Path | None:
        named = os.environ.get("SSL_CERT_FILE")
        if self._ca_file is None and not named:
            return None
        system = named or ssl.get_default_verify_paths().cafile
        if system is None:
            import certifi

            system = certifi.where()
        content = b"\n".join(Path(file).read_bytes() for file in (system, self._ca_file) if file is not None)
        descriptor, name = tempfile.mkstemp(prefix="sealpipe-ca-", suffix=".pem")
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        atexit.register(partial(Path(name).unlink, missing_ok=True))
        return Path(name)
