"""A fake of Google, and the environments of a user and of a service account that may use it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.gcp.fake_secret_manager import PROJECT, FakeSecretManager
from sealpipe_plugins import cloud
from sealpipe_plugins.http_api import Endpoint

DEFAULT = "SEALPIPE_PLUGIN_GCP_SM__"


@pytest.fixture
def google() -> Iterator[FakeSecretManager]:
    with FakeSecretManager() as fake:
        yield fake


@pytest.fixture
def rerouted(google: FakeSecretManager, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake is where Google's own login is: some logins have no other address."""

    def endpoint(context: Any, name: str, url: str, **more: Any) -> Endpoint:
        return Endpoint(
            context, name, google.base_url if url.endswith(".googleapis.com") else url, **more
        )

    monkeypatch.setattr(cloud, "Endpoint", endpoint)


@pytest.fixture
def environ(
    google: FakeSecretManager,
    rerouted: None,  # noqa: ARG001 - for the login
    tmp_path: Path,
) -> dict[str, str]:
    """The default store's login, by the variables of Google's own tools: a user's, for a key takes
    40 ms to load.
    """
    return _environ(google, tmp_path / "login.json", google.user_credentials())


@pytest.fixture
def keyed(google: FakeSecretManager, tmp_path: Path) -> dict[str, str]:
    """The same by a service account's key, in any process."""
    return _environ(google, tmp_path / "key.json", google.credentials())


def _environ(google: FakeSecretManager, file: Path, content: str) -> dict[str, str]:
    file.write_text(content)
    return {
        "GOOGLE_APPLICATION_CREDENTIALS": str(file),
        "GOOGLE_CLOUD_PROJECT": PROJECT,
        f"{DEFAULT}URL": google.base_url,
        f"{DEFAULT}TIMEOUT": "5",
    }
