"""A fake of Google, and the environment of a service account that may use it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.gcp.fake_secret_manager import PROJECT, FakeSecretManager
from sealpipe_plugins.gcp import transport
from sealpipe_plugins.http_api import Endpoint

DEFAULT = "SEALPIPE_PLUGIN_GCP_SM__"


@pytest.fixture
def google() -> Iterator[FakeSecretManager]:
    with FakeSecretManager() as fake:
        yield fake


@pytest.fixture
def environ(google: FakeSecretManager, tmp_path: Path) -> dict[str, str]:
    """The default store's login, by the variables of Google's own tools."""
    file = tmp_path / "key.json"
    file.write_text(google.credentials())
    return {
        "GOOGLE_APPLICATION_CREDENTIALS": str(file),
        "GOOGLE_CLOUD_PROJECT": PROJECT,
        f"{DEFAULT}URL": google.base_url,
        f"{DEFAULT}TIMEOUT": "5",
    }


@pytest.fixture
def rerouted(google: FakeSecretManager, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake is where Google's own login is: some logins have no other address."""

    def endpoint(context: Any, name: str, url: str, **more: Any) -> Endpoint:
        return Endpoint(context, name, google.base_url if url.endswith(".googleapis.com") else url, **more)

    monkeypatch.setattr(transport, "Endpoint", endpoint)
