"""What goes wrong at 1Password, and how each is told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plugins.onepassword.fake_op_connect import HIDDEN, TOKEN, FakeConnect, filled, made_id
from sealpipe.errors import (
    AccessDeniedError,
    BackendAuthError,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    UnavailableError,
    UnsupportedError,
    WriteConflictError,
)
from sealpipe.testing.contract import CANARY
from support.failures import Row, Table
from support.fake_web import Reply
from support.parts import library

READER = "Canary-token-7be1"
NO_VAULT = "there is no vault of that name, or the token may not see it"
NO_ITEM = "there is no item of that title"
NO_FIELD = "the item has no such field"
NO_REFERENCE = "is not a 1Password reference"
BARE = {"OP_CONNECT_HOST": "", "OP_CONNECT_TOKEN": ""}
ITEM = "//Prod env/db"


def account(token: str) -> dict[str, str]:
    return {**BARE, "OP_SERVICE_ACCOUNT_TOKEN": token}


def connect(host: str, token: str = TOKEN) -> dict[str, str]:
    return {"OP_CONNECT_HOST": host, "OP_CONNECT_TOKEN": token}


def refuses(words: str, body: str = ITEM, **values: str | bytes) -> Row:
    return Row(ReferenceValueError, words, body, put=values, mode="merge")


APART = {
    "no item": Row(SecretNotFoundError, NO_ITEM, "//Prod env/none/password"),
    "no field": Row(SecretNotFoundError, NO_FIELD, f"{ITEM}/none"),
    "hidden": Row(SecretNotFoundError, NO_VAULT, "//Hidden/db/password"),
    "denied": Row(
        AccessDeniedError,
        "does not let this token read that vault (403)",
        f"//{made_id(1, 'v')}/db/password",
    ),
    "expired token": Row(
        BackendAuthError,
        "refused the token",
        environ={"OP_CONNECT_TOKEN": "Canary-that-expired"},
        remedy="OP_CONNECT_TOKEN",
    ),
    "two items": Row(ReferenceValueError, "2 items have that title", "//Prod env/twin/password"),
    "no reference": Row(ReferenceValueError, NO_REFERENCE, "//Prod env"),
    "attributes": Row(
        UnsupportedError,
        "a Connect server does not support attribute=",
        f"{ITEM}/password?attribute=otp",
    ),
    "no login": Row(
        NotConfiguredError,
        "op: no 1Password login is configured",
        environ=BARE,
        remedy="OP_SERVICE_ACCOUNT_TOKEN",
    ),
    "no token": Row(
        NotConfiguredError,
        "OP_CONNECT_TOKEN is not",
        environ=connect("http://x", ""),
        remedy="set OP_CONNECT_TOKEN",
    ),
    "no host": Row(
        NotConfiguredError,
        "OP_CONNECT_HOST is not",
        environ=connect(""),
        remedy="set OP_CONNECT_HOST",
    ),
}
MORE = {
    "another vault": Row(SecretNotFoundError, NO_VAULT, "//Nowhere/db/password"),
    "no vault of that id": Row(
        SecretNotFoundError, "does not have it, or hides it", f"//{made_id(8, 'v')}/db/password"
    ),
    "a vault in small letters": Row(SecretNotFoundError, NO_VAULT[:35], "//prod env/db/password"),
    "an item in capitals": Row(SecretNotFoundError, NO_ITEM, "//Prod env/DB/password"),
    "no item of that id": Row(
        SecretNotFoundError, NO_ITEM, f"//Prod env/{made_id(98, 'q')}/password"
    ),
    "no field in a section": Row(SecretNotFoundError, NO_FIELD, f"{ITEM}/Admin/none"),
    "no section": Row(
        SecretNotFoundError, "the item has no section with that name", f"{ITEM}/Nobody/password"
    ),
    "two fields": Row(ReferenceValueError, "2 fields of the item have that name", f"{ITEM}/twin"),
    "formats": Row(
        UnsupportedError,
        "a Connect server does not support ssh-format=",
        f"{ITEM}/password?ssh-format=openssh",
    ),
    "no name of a field": Row(ReferenceValueError, NO_REFERENCE, f"{ITEM}/"),
    "nothing": Row(ReferenceValueError, NO_REFERENCE, "//"),
    "five names": Row(ReferenceValueError, NO_REFERENCE, "//a/b/c/d/e"),
    "503": Row(
        UnavailableError,
        "asks to try again later (503)",
        answer=Reply(503, b"", {"retry-after": "2"}),
        waits=2,
    ),
    "500": Row(UnavailableError, "failed (500)", answer=Reply(500, CANARY)),
    "400": Row(PluginError, "(400)", answer=Reply(400, CANARY), remedy=None),
    "a page": Row(
        PluginError, "a response that is not JSON", answer=Reply(200, f"<html>{CANARY}".encode())
    ),
    "deep": Row(PluginError, "a response that is not JSON", answer=Reply(200, b"[" * 100_000)),
    "other JSON": Row(PluginError, "an unexpected response", answer=Reply(200, b'{"a": 1}')),
    "no id": Row(
        PluginError,
        "without a valid id",
        answer=Reply(200, b'[{"name": "Prod env", "id": "../../x"}]'),
    ),
    **{
        f"the host {host}": Row(
            NotConfiguredError, "not an address", environ=connect(host), remedy="https://"
        )
        for host in ("localhost:8080", "http://a:b@x")
    },
    **{
        f"the token {token}": Row(
            NotConfiguredError,
            "service account is invalid",
            environ=account(token),
            remedy="begins with ops_",
        )
        for token in ("Canary", "ops_Canary")
    },
    "a whole item by a service account": Row(
        UnsupportedError, "whole item", ITEM, environ=account("Canary")
    ),
    "other content": Row(WriteConflictError, "other content", ITEM, put={"password": "1"}),
    "other content in one of three": Row(
        WriteConflictError,
        "other content",
        ITEM,
        put={"username": "1", made_id(2, "f"): "2", "password": "3"},
    ),
    "a file": Row(
        UnsupportedError, "is a file of the item", ITEM, put={"tls.pem": "1"}, mode="merge"
    ),
    "no section to write in": Row(
        UnsupportedError, "has no section of that name", ITEM, put={"None/PIN": "1"}, mode="merge"
    ),
    "no text": Row(
        UnsupportedError, "holds text only", ITEM, put={"password": b"\xff"}, mode="merge"
    ),
    "two fields to write": refuses("2 fields of the item have that name", twin="1"),
    **{
        f"the key {key}": refuses("cannot name a field", **{key: "1"})
        for key in ("a/b/c", "sealpipe", "")
    },
    "a field twice": refuses(
        "names a field, and so do its keys", "//Prod env/db/password", password="1"
    ),
    "no item to write": refuses(NO_REFERENCE, "//Prod env", password="1"),
    "two items to write": refuses("2 items have that title", "//Prod env/twin", password="1"),
    "no vault to write in": Row(
        SecretNotFoundError, NO_VAULT[:35], "//Nowhere/db", put={"password": CANARY}
    ),
    "no vault of that id to write in": Row(
        SecretNotFoundError, "does not have it", f"//{made_id(8, 'v')}/db", put={"password": CANARY}
    ),
    "a token that only reads": Row(
        AccessDeniedError,
        "does not let this token write to that vault",
        "//Prod env/new",
        {"OP_CONNECT_TOKEN": READER},
        put={"password": CANARY},
    ),
    "a token that may not write": Row(
        BackendAuthError,
        "refused the token",
        "//Prod env/new",
        {"OP_CONNECT_TOKEN": "another"},
        put={"password": CANARY},
    ),
}
ROWS = {**APART, **MORE}


@pytest.fixture
def table() -> Iterator[Table]:
    with FakeConnect() as fake:
        filled(fake)
        fake.tokens[READER], fake.read_only = {made_id(0, "v")}, {READER}
        secrets = (TOKEN, READER, HIDDEN, "hunter2", "Canary-that-expired", "ops_Canary")
        environ = connect(fake.base_url)
        yield Table("op", f"{ITEM}/password", environ, fake, secrets=secrets)


@pytest.mark.parametrize("name", ROWS)
def test_a_failure_reads_as_what_it_is(name: str, table: Table) -> None:
    if "OP_SERVICE_ACCOUNT_TOKEN" in ROWS[name].environ:
        library("onepassword", "onepassword-sdk")
    table.tell(ROWS[name])
    assert table.fake is not None
    written = {asked.method for asked in table.fake.asked} - {"GET"}
    assert not written or ROWS[name].kind in (SecretNotFoundError, AccessDeniedError)


def test_what_needs_another_next_step_is_told_apart(table: Table) -> None:
    table.tell_apart(APART)
