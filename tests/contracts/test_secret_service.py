"""The conformance kits on the real gnome-keyring, in a D-Bus session of its own."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterator, Mapping

import pytest

from sealpipe.testing import SinkContract, SourceContract
from sealpipe.testing.source import Content
from support.parts import BACKEND, missing, secret_service


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    with secret_service(tmp_path_factory.mktemp("session")) as environ:
        yield environ


class Open:
    """Tests in that session."""

    @pytest.fixture(autouse=True)
    def open_keyring(self, session: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
        try:
            import secretstorage
        except ImportError:
            missing("SecretStorage is not installed")
        self.library, self.numbers = secretstorage, itertools.count()
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
        connection = self.library.dbus_init()
        collection = self.library.Collection(connection)
        collection.create_item(
            name, {"service": "https://kit/", "username": name}, content, replace=True
        )
        connection.close()
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
        import keyring

        service, _, username = body.rpartition("/")
        backend = keyring.core.load_keyring(BACKEND)
        found = backend.get_password(service, username)
        return {} if found is None else {self.keys[0]: found.encode()}
