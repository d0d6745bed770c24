"""The conformance kit on the real gnome-keyring, in a D-Bus session of its own."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Iterator, Mapping

import pytest

from sealpipe.testing import SourceContract
from sealpipe.testing.source import Content
from support.parts import missing, program

BACKEND = "keyring.backends.SecretService.Keyring"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """A bus, and an unlocked keyring on it: the variables by which both are found."""
    home = tmp_path_factory.mktemp("session")
    (home / "run").mkdir(mode=0o700)
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_RUNTIME_DIR": str(home / "run")}
    bus = subprocess.Popen(
        [program("dbus-daemon"), "--session", "--nofork", "--print-address"],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert bus.stdout is not None
    environ["DBUS_SESSION_BUS_ADDRESS"] = bus.stdout.readline().strip()
    command = [program("gnome-keyring-daemon"), "--unlock", "--components=secrets"]
    with bus:
        # It goes to the background once it is on the bus, and ends with the bus.
        subprocess.run(command, env=environ, input=b"secret", stdout=subprocess.DEVNULL, check=True)
        yield environ
        bus.terminate()


class TestKeyring(SourceContract):
    name = "keyring"
    holds = frozenset({"text", "binary", "empty"})

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

    def put(self, content: Content) -> str:
        assert isinstance(content, bytes)
        name = f"value {next(self.numbers)}"
        connection = self.library.dbus_init()
        collection = self.library.Collection(connection)
        collection.create_item(name, {"service": "https://kit/", "username": name}, content, replace=True)
        connection.close()
        return f"https://kit//{name}"

    def missing(self) -> str:
        return "https://kit//nothing"
