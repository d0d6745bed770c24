"""The conformance kits on the real gnome-keyring, in a D-Bus session of its own."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import pytest

from sealpipe.testing import SinkContract, SourceContract
from sealpipe.testing.source import Content
from support.parts import BACKEND, missing, secret_service


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    with secret_service(tmp_path_factory.mktemp("session")) as environ:
        yield environ


@pytest.fixture(scope="module")
def default_keyring(session: Mapping[str, str]) -> Iterator[Any]:
    """The default keyring, by one connection: gnome-keyring may abort where they come and go."""
    try:
        import secretstorage
    except ImportError:
        missing("SecretStorage is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DBUS_SESSION_BUS_ADDRESS", session["DBUS_SESSION_BUS_ADDRESS"])
        connection = secretstorage.dbus_init()
    with closing(connection):
        yield secretstorage.Collection(connection)


class Open:
    """Tests in that session."""

    @pytest.fixture(autouse=True)
    def open_keyring(
        self, session: Mapping[str, str], default_keyring: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.default_keyring, self.numbers = default_keyring, itertools.count()
        for name, value in session.items():
            monkeypatch.setenv(name, value)

    @pytest.fixture
    def environ(self, session: Mapping[str, str]) -> Mapping[str, str]:
        return {**session, "PYTHON_KEYRING_BACKEND": BACKEND}


class TestKeyring(Open, SourceContract):
    name = "keyring"
    holds = frozenset({"text", "binary", "empty"})

    def put(self, content: Content) -> str:
        assert isinstance(content, bytes)
        name = f"value {next(self.numbers)}"
        self.default_keyring.create_item(
            name, {"service": "https://kit/", "username": name}, content, replace=True
        )
        return f"https://kit//{name}"

    def missing(self) -> str:
        return "https://kit//nothing"


class TestKeyringSink(Open, SinkContract):
    name = "keyring"
    single = True
    marks = False

    def target(self) -> str:
        return f"https://kit//sink-{secrets.token_hex(8)}"

    def stored(self, body: str) -> Mapping[str, bytes]:
        service, _, username = body.rpartition("/")
        found = self.default_keyring.search_items({"service": service, "username": username})
        return {key: item.get_secret() for key, item in zip(self.keys, found, strict=False)}
