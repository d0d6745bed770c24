"""A fake of Azure, and the environment of an application that may use it: directly, or behind its
real names.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.azure_key_vault.fake_key_vault import CLIENT, HOST, LOGIN, SECRET, TENANT, FakeKeyVault
from sealpipe_plugins import cloud
from sealpipe_plugins.http_api import Endpoint
from support.wires import Intercepting

DEFAULT = "SEALPIPE_PLUGIN_AZURE_KV__"
APPLICATION = {"AZURE_TENANT_ID": TENANT, "AZURE_CLIENT_ID": CLIENT, "AZURE_CLIENT_SECRET": SECRET}


@pytest.fixture
def azure() -> Iterator[FakeKeyVault]:
    with FakeKeyVault() as fake:
        yield fake


@pytest.fixture
def environ(azure: FakeKeyVault, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The default store's login, by the variables of Microsoft's own tools; the fake is where the
    login is.
    """

    def endpoint(context: Any, name: str, url: str, **more: Any) -> Endpoint:
        return Endpoint(context, name, azure.base_url if url == f"https://{LOGIN}" else url, **more)

    monkeypatch.setattr(cloud, "Endpoint", endpoint)
    return {**APPLICATION, f"{DEFAULT}URL": azure.base_url, f"{DEFAULT}TIMEOUT": "5"}


@pytest.fixture
def proxy(azure: FakeKeyVault, tmp_path: Path) -> Iterator[Intercepting]:
    """A proxy to the fake under Azure's own names, with TLS."""
    with Intercepting(tmp_path, {HOST: azure.port, LOGIN: azure.port}) as found:
        yield found


@pytest.fixture
def behind(proxy: Intercepting) -> dict[str, str]:
    """The environment of a command that gets there by it."""
    return {**APPLICATION, "HTTPS_PROXY": proxy.url(), "SEALPIPE_CA_FILE": str(proxy.ca_file)}
