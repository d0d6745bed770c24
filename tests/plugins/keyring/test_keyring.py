"""keyring:SERVICE/USERNAME, with the real gnome-keyring in a D-Bus session of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from plugins.keyring.desktop import CANARY, session
from sealpipe.errors import NotConfiguredError, ReferenceValueError, UnsupportedError
from sealpipe.reference import parse_field
from sealpipe.registry import Registry
from sealpipe.sources.resolve import resolve
from support.backends import opened
from support.parts import library


def test_passwords_are_taken_exactly(tmp_path: Path) -> None:
    seen = session(
        tmp_path,
        """
keyring.set_password("db", "app", " hunter2 é\\n")
keyring.set_password("https://example.org/api/", "me@example.org", "two")
keyring.set_password("corp", "DOMAIN/me", "three")
keyring.set_password("empty", "x", "")
tell("keyring:db/app")
tell("Label=keyring:https://example.org/api//me@example.org")
tell("keyring:corp?username=DOMAIN/me")
tell("keyring:db/other")
tell("keyring:db?username=")
tell("keyring:empty/x")
health = registry.check("source", "keyring")
say(health.ok, health.detail)
""",
    )
    assert seen.told == [
        ["app", " hunter2 é\n"],
        ["Label", "two"],
        ["corp", "three"],
        ["SecretNotFoundError", "keyring:db/other is not in the keyring", "keyring:db/other", True],
        [
            "ReferenceValueError",
            "keyring: needs a service and a user name",
            "keyring:db?username=",
            True,
        ],
        ["SecretNotFoundError", "keyring:empty/x is empty", "keyring:empty/x", True],
        [True, "SecretService Keyring"],
    ]


def test_a_locked_keyring_is_reported_without_a_prompt(tmp_path: Path) -> None:
    seen = session(
        tmp_path,
        """
keyring.set_password("db", "app", CANARY)
collection().lock()
tell("keyring:db/app")
try:
    registry.check("source", "keyring")
except PluginError as error:
    say(type(error).__name__, error.message)
""",
    )
    assert seen.told == [
        ["AccessDeniedError", "the keyring is locked", "keyring:db/app", True],
        ["AccessDeniedError", "the keyring is locked"],
    ]
    assert "Prompter" not in seen.errors
    assert CANARY not in seen.errors


def test_a_process_opens_one_connection_and_a_new_one_after_a_failure(tmp_path: Path) -> None:
    """gnome-keyring may abort when connections come and go."""
    seen = session(
        tmp_path,
        """
import os, signal, subprocess
from jeepney import DBusAddress, new_method_call

keyring.set_password("db", "app", "hunter2")
opened_by_us, connect = [], secretstorage.dbus_init
secretstorage.dbus_init = lambda: opened_by_us.append(connect()) or opened_by_us[-1]

def tell_twice():
    tell("keyring:db/app")
    tell("keyring:db/app")
    say(len(opened_by_us))

tell_twice()
bus = DBusAddress("/org/freedesktop/DBus", "org.freedesktop.DBus", "org.freedesktop.DBus")
owner = new_method_call(bus, "GetConnectionUnixProcessID", "s", ("org.freedesktop.secrets",))
os.kill(opened_by_us[0].send_and_get_reply(owner).body[0], signal.SIGKILL)
subprocess.run(["gnome-keyring-daemon", "--unlock"], input=b"secret", stdout=2, check=True)
tell_twice()
""",
    )
    found = ["app", "hunter2"]
    assert seen.told == [found, found, [1], found, found, [2]]


def test_the_prompt_that_keyring_itself_would_open_is_seen_by_this_test(tmp_path: Path) -> None:
    seen = session(
        tmp_path,
        """
keyring.set_password("db", "app", CANARY)
collection().lock()
with contextlib.suppress(keyring.errors.KeyringLocked):
    keyring.get_password("db", "app")
""",
    )
    assert "Prompter" in seen.errors


def test_a_keyring_that_was_never_used_is_empty_and_not_made(tmp_path: Path) -> None:
    seen = session(
        tmp_path,
        'tell("keyring:db/app")',
        start="gnome-keyring-daemon --start --components=secrets",
    )
    assert seen.told == [
        ["SecretNotFoundError", "keyring:db/app is not in the keyring", "keyring:db/app", True]
    ]
    assert "Prompter" not in seen.errors


def test_without_a_session_there_is_no_keyring(tmp_path: Path) -> None:
    seen = session(tmp_path, 'tell("keyring:db/app")', under=())
    assert seen.told == [
        ["NotConfiguredError", "this machine has no keyring", "keyring:db/app", True]
    ]


BACKENDS = {
    "keyring.backends.fail.Keyring": (NotConfiguredError, "this machine has no keyring"),
    "keyring.backends.null.Keyring": (NotConfiguredError, "keyring is disabled here"),
    "keyring.backends.none.Keyring": (
        NotConfiguredError,
        "the keyring backend does not exist: keyring.backends.none",
    ),
    "Keyring": (NotConfiguredError, "the keyring backend does not exist: Keyring"),
    "keyring.backends.macOS.Keyring": (
        NotConfiguredError,
        "the keyring backend that is set cannot be used here",
    ),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("variable", ["PYTHON_KEYRING_BACKEND", "SEALPIPE_PLUGIN_KEYRING__BACKEND"])
def test_each_way_to_have_no_keyring_reads_differently(variable: str, backend: str) -> None:
    library("keyring", "keyring")
    registry = Registry(environ={variable: backend})
    with pytest.raises(NotConfiguredError) as caught:
        resolve([parse_field("keyring:db/app")], lambda: registry)
    kind, message = BACKENDS[backend]
    assert type(caught.value) is kind
    assert message in caught.value.message
    assert caught.value.locator == "keyring:db/app"
    assert "dbus-run-session" in caught.value.remedy


OWN = """
from keyring.backend import KeyringBackend

class {name}(KeyringBackend):
    priority = 0
    def get_password(self, service, username):
        {body}
    def set_password(self, service, username, password):
        raise NotImplementedError
"""


def test_a_third_party_backend_is_used_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library("keyring", "keyring")
    (tmp_path / "attic_keyring.py").write_text(
        OWN.format(name="Attic", body="return f'{service}|{username}'")
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = Registry(environ={"PYTHON_KEYRING_BACKEND": "attic_keyring.Attic"})
    (field,) = resolve([parse_field("keyring:a/b/c")], lambda: registry)
    assert opened(field) == b"a/b|c"


def test_a_backend_that_can_only_ask_is_refused_before_it_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library("keyring", "keyring")
    for package in ("keyrings", "keyrings/cryptfile"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("")
    code = OWN.format(name="CryptFileKeyring", body="raise AssertionError('asked')")
    (tmp_path / "keyrings/cryptfile/cryptfile.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [each for each in sys.modules if each.partition(".")[0] == "keyrings"]:
        monkeypatch.delitem(sys.modules, name)
    registry = Registry(
        environ={"PYTHON_KEYRING_BACKEND": "keyrings.cryptfile.cryptfile.CryptFileKeyring"}
    )
    with pytest.raises(UnsupportedError, match="prompts for a password, which sealpipe never does"):
        resolve([parse_field("keyring:a/b")], lambda: registry)


def test_a_backend_that_breaks_shows_nothing_of_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library("keyring", "keyring")
    (tmp_path / "broken_keyring.py").write_text(
        OWN.format(name="Broken", body=f"raise OSError({CANARY!r})")
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = Registry(environ={"PYTHON_KEYRING_BACKEND": "broken_keyring.Broken"})
    with pytest.raises(
        Exception, match=r"the source keyring raised an unexpected OSError"
    ) as caught:
        resolve([parse_field("keyring:a/b")], lambda: registry)
    assert CANARY not in repr(vars(caught.value))
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


def test_without_the_package_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("sealpipe_plugins.keyring.source_and_sink", "sealpipe_plugins.keyring.client"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "keyring", None)
    registry = Registry(environ={})
    with pytest.raises(
        NotConfiguredError, match="the source keyring cannot be used here"
    ) as caught:
        resolve([parse_field("keyring:a/b")], lambda: registry)
    assert caught.value.remedy == "pip install 'sealpipe[keyring]'"


@pytest.mark.parametrize("body", ["", "db", "/me", "db/"])
def test_a_service_and_a_user_name_are_needed(body: str) -> None:
    library("keyring", "keyring")
    registry = Registry(environ={})
    with pytest.raises(ReferenceValueError, match="needs a service and a user name"):
        resolve([parse_field(f"keyring:{body}")], lambda: registry)
