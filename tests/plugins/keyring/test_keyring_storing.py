"""Storing in keyring:SERVICE/USERNAME: the real gnome-keyring, and backends of keyring's own
kind.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from plugins.keyring.desktop import CANARY, session
from sealpipe.errors import (
    AccessDeniedError,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    UnsupportedError,
    WriteConflictError,
)
from sealpipe.plugin import Mode, Secret, SinkField, WriteResult
from sealpipe.reference import parse
from sealpipe.registry import Registry
from sealpipe.registry.sinks import describe_write, write_fields
from support.parts import library

PUT = """
from sealpipe.plugin import Secret, SinkField
from sealpipe.reference import parse
from sealpipe.registry.sinks import write_fields

def put(text, value, mode="create"):
    try:
        locator = registry.locate(parse(text), "sink")
        fields = [SinkField("", Secret(value))]
        receipt = write_fields(registry, "keyring", locator, fields, mode, "m1")
        say("already" if receipt.already else "stored")
    except PluginError as error:
        say(type(error).__name__, error.message, error.locator, bool(error.remedy))

def there():
    items = collection().get_all_items()
    return sorted((item.get_attributes()["username"], item.get_secret().hex()) for item in items)
"""


def test_modes_and_equal_content(tmp_path: Path) -> None:
    seen = session(
        tmp_path,
        PUT
        + """
put("keyring:db/app", "one")
put("keyring:db/app", "one")
put("keyring:db/app", "two")
put("keyring:db/app", "two", "merge")
put("keyring:db/app", "three", "replace")
put("keyring:db?username=DOMAIN/me", "four")
put("keyring:db/", "x")
tell("keyring:db/app")
tell("keyring:db?username=DOMAIN/me")
say(keyring.get_password("db", "app"), len(there()))
""",
    )
    assert seen.told == [
        ["stored"],
        ["already"],
        ["WriteConflictError", "the target already has other content", "keyring:db/app", True],
        ["stored"],
        ["stored"],
        ["stored"],
        ["ReferenceValueError", "keyring: needs a service and a user name", "keyring:db/", True],
        ["app", "three"],
        ["db", "four"],
        ["three", 2],
    ]


def test_bytes_that_are_no_text_are_stored_exactly(tmp_path: Path) -> None:
    seen = session(tmp_path, PUT + 'put("keyring:db/app", b"\\xff\\x00\\n"); say(there())')
    assert seen.told == [["stored"], [[["app", "ff000a"]]]]


def test_an_entry_that_another_program_made_is_written_and_not_shadowed(tmp_path: Path) -> None:
    seen = session(
        tmp_path,
        PUT
        + """
collection().create_item("by hand", {"service": "db", "username": "app"}, b"old")
put("keyring:db/app", "new", "replace")
say(there(), [item.get_label() for item in collection().get_all_items()])
""",
    )
    assert seen.told == [["stored"], [[["app", b"new".hex()]], ["by hand"]]]


def test_a_locked_keyring_is_reported_without_a_prompt(tmp_path: Path) -> None:
    seen = session(
        tmp_path,
        PUT
        + """
keyring.set_password("db", "app", "old")
collection().lock()
put("keyring:db/app", CANARY, "replace")
put("keyring:db/other", CANARY)
try:
    registry.check("sink", "keyring")
except PluginError as error:
    say(type(error).__name__, error.message)
""",
    )
    assert seen.told == [
        ["AccessDeniedError", "the keyring is locked", "keyring:db/app", True],
        ["AccessDeniedError", "the keyring is locked", "keyring:db/other", True],
        ["AccessDeniedError", "the keyring is locked"],
    ]
    assert "Prompter" not in seen.errors
    assert CANARY not in seen.errors


def test_a_keyring_that_was_never_made_is_not_made_by_asking(tmp_path: Path) -> None:
    start = "gnome-keyring-daemon --start --components=secrets"
    seen = session(tmp_path, PUT + 'put("keyring:db/app", CANARY)', start=start)
    assert seen.told == [
        ["NotConfiguredError", "the Secret Service has no default keyring", "keyring:db/app", True]
    ]
    assert "Prompter" not in seen.errors


def test_of_several_keyrings_the_one_that_has_it_is_written_else_the_first(tmp_path: Path) -> None:
    seen = session(
        tmp_path,
        PUT
        + """
from keyring.backend import KeyringBackend

def made(name, priority, held):
    class Held(KeyringBackend):
        def get_password(self, service, username):
            return held.get(username)
        def set_password(self, service, username, password):
            held[username] = password
    Held.priority = priority
    Held.__qualname__ = name
    return held

first, second = made("First", 90, {}), made("Second", 80, {"app": "old"})
registry = Registry(environ={"PYTHON_KEYRING_BACKEND": "keyring.backends.chainer.ChainerBackend"})
put("keyring:db/app", "new", "replace")
put("keyring:db/other", "one")
say(first, second)
""",
        under=(),
    )
    assert seen.told == [["stored"], ["stored"], [{"other": "one"}, {"app": "new"}]]


HOLDING = """
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordSetError

held = {{}}

class {name}(KeyringBackend):
    priority = 0
    def get_password(self, service, username):
        return held.get((service, username))
    def set_password(self, service, username, password):
        {body}
"""

Backend = Callable[[str], Registry]


@pytest.fixture
def backend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Backend:
    """A registry whose keyring stores in a certain way."""
    library("keyring", "keyring")
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(body: str) -> Registry:
        name = f"holding_{abs(hash(request.node.name))}"
        (tmp_path / f"{name}.py").write_text(HOLDING.format(name="Holding", body=body))
        return Registry(environ={"PYTHON_KEYRING_BACKEND": f"{name}.Holding"})

    return make


def put(
    registry: Registry, *values: str | bytes, body: str = "db/app", mode: Mode = "create"
) -> WriteResult:
    locator = registry.locate(parse(f"keyring:{body}"), "sink")
    return write_fields(
        registry, "keyring", locator, [SinkField("k", Secret(each)) for each in values], mode, "m1"
    )


KEEPS = "held[service, username] = password"


def test_a_third_party_backend_stores_text(backend: Backend) -> None:
    registry = backend(KEEPS)
    assert not put(registry, "é\n").already
    assert put(registry, "é\n").already
    with pytest.raises(WriteConflictError):
        put(registry, "other")
    assert not put(registry, "other", mode="merge").already


@pytest.mark.parametrize("value", [b"\xff", "\ud800"])
def test_what_is_no_text_is_refused_by_a_backend_of_texts(
    backend: Backend, value: str | bytes
) -> None:
    with pytest.raises(UnsupportedError) as caught:
        put(backend(KEEPS), value)
    assert "base64" in caught.value.remedy


BROKEN = {
    f"raise PasswordSetError({CANARY!r})": (AccessDeniedError, "refused the value"),
    f"raise KeyringLocked({CANARY!r})": (AccessDeniedError, "the keyring is locked"),
    f"raise NotImplementedError({CANARY!r})": (AccessDeniedError, "refused the value"),
    f"raise OSError({CANARY!r})": (PluginError, "raised an unexpected OSError"),
    "held[service, username] = password[:-1]": (PluginError, "is not the one that was stored"),
    "pass": (PluginError, "is not the one that was stored"),
}


@pytest.mark.parametrize("body", BROKEN)
def test_a_failing_backend_is_reported_without_its_text(backend: Backend, body: str) -> None:
    kind, words = BROKEN[body]
    with pytest.raises(kind, match=words) as caught:
        put(backend(body), CANARY)
    assert type(caught.value) is kind
    assert CANARY not in repr(vars(caught.value)) + repr(caught.value.__context__)


def test_a_keyring_of_plain_text_is_not_stored_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library("keyring", "keyring")
    for package in ("keyrings", "keyrings/alt"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("")
    code = HOLDING.format(name="PlaintextKeyring", body="raise AssertionError('stored')")
    (tmp_path / "keyrings/alt/file.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("keyrings", "keyrings.alt", "keyrings.alt.file"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    registry = Registry(environ={"PYTHON_KEYRING_BACKEND": "keyrings.alt.file.PlaintextKeyring"})
    with pytest.raises(UnsupportedError, match="stores everything in plain text"):
        put(registry, "one")
    with pytest.raises(UnsupportedError, match="stores everything in plain text"):
        registry.check("sink", "keyring")


def test_an_entry_takes_one_value(backend: Backend) -> None:
    with pytest.raises(ReferenceValueError, match="holds one value"):
        put(backend(KEEPS), "one", "two")


def test_without_a_keyring_it_says_so() -> None:
    library("keyring", "keyring")
    with pytest.raises(NotConfiguredError, match="this machine has no keyring"):
        put(Registry(environ={"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}), "one")


def test_a_planned_write_is_described() -> None:
    library("keyring", "keyring")
    registry = Registry(environ={})
    locator = registry.locate(parse("keyring:https://example.org/api/me"), "sink")
    told = "store me of https://example.org/api in the keyring, replacing what is there"
    assert describe_write(registry, "keyring", locator, "replace") == told
    with pytest.raises(ReferenceValueError):
        describe_write(registry, "keyring", registry.locate(parse("keyring:db"), "sink"), "create")
