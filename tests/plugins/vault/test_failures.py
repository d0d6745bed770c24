"""What goes wrong at Vault, and how each is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugins.vault.conftest import Registries
from plugins.vault.storing import values
from sealpipe.errors import (
    AccessDeniedError,
    BackendAuthError,
    NotConfiguredError,
    ReferenceValueError,
    SecretNotFoundError,
    UnavailableError,
    UnsupportedError,
)
from sealpipe.testing.contract import CANARY
from support.failures import Row, Table
from support.fake_web import Asked, FrontDoor, Reply
from support.openbao import Bao

P = "SEALPIPE_PLUGIN_VAULT__"
GONE = "has expired, was revoked"


def lacks(words: str, **environ: str) -> Row:
    """A login that is not whole."""
    whole = {f"{'' if name.startswith('VAULT') else P}{name}": environ[name] for name in environ}
    return Row(NotConfiguredError, words, environ={"VAULT_TOKEN": "", **whole})


def address(text: str, words: str) -> Row:
    return Row(NotConfiguredError, words, environ={"VAULT_ADDR": text})


APART = {
    "no secret": Row(SecretNotFoundError, "secret/app/nothing", "secret/app/nothing"),
    "no engine": Row(SecretNotFoundError, "has no secrets engine there", "nowhere/app/db"),
    "no namespace": Row(
        SecretNotFoundError, "no namespace nobody", "secret/app/db?namespace=nobody"
    ),
    "denied": Row(
        AccessDeniedError,
        "the token has no permission to read secret/data/other",
        "secret/other",
        remedy='path "secret/data/other" { capabilities = ["read"] }',
    ),
    "no token of Vault's": Row(BackendAuthError, GONE, environ={"VAULT_TOKEN": "s.nobody"}),
    "a standby": Row(UnavailableError, "is a standby", answer=Reply(473, b"{}")),
    "not initialised": Row(NotConfiguredError, "not initialised", answer=Reply(501, b"{}")),
    "a web page": Row(
        NotConfiguredError, "is not Vault", answer=Reply(200, f"<html>{CANARY}".encode())
    ),
    "no login": lacks("no login"),
    "unencrypted": address("http://vault.example:8200", "would be sent unencrypted"),
}
MORE = {
    "500": Row(
        UnavailableError,
        "has an internal error",
        answer=Reply(500, {"errors": [f"dial tcp user:{CANARY}@db: refused"]}),
    ),
    "502": Row(
        UnavailableError, "got no valid response", answer=Reply(502, b"<html>"), remedy=None
    ),
    "429": Row(
        UnavailableError,
        "limit of requests",
        answer=Reply(429, b"{}", {"retry-after": "7"}),
        waits=7,
        remedy=None,
    ),
    "nesting": Row(NotConfiguredError, "is not Vault", answer=Reply(200, b"[" * 100_000)),
    "no data": Row(
        SecretNotFoundError, ": Vault has no secrets engine there", answer=Reply(200, b"{}")
    ),
    "a wrong login": Row(
        BackendAuthError,
        environ={"VAULT_TOKEN": "", "VAULT_ROLE_ID": "x", "VAULT_SECRET_ID": "Canary-wrong"},
    ),
    "no role_id": lacks("lacks its role_id", AUTH="approle"),
    "no role": lacks("lacks its role", AUTH="kubernetes"),
    "no password": lacks("lacks its password", USERNAME="bob"),
    "no token": lacks("lacks its token", AUTH="token"),
    "no file": lacks("token_file of vault cannot be read: no such file", TOKEN_FILE="/nonexistent"),
    "no file of an id": lacks(
        "secret_id_file of vault cannot be read", VAULT_ROLE_ID="x", SECRET_ID_FILE="/nonexistent"
    ),
    "two lines": lacks("contains invalid characters", VAULT_TOKEN="two\r\nX-Header: lines"),
    "a namespace of two lines": lacks(
        "the namespace contains invalid characters",
        VAULT_TOKEN="x",
        VAULT_NAMESPACE="a\r\nX-Header: b",
    ),
    "no scheme": address("vault.example:8200", "is not an address"),
    "a login in it": address("https://user:pass@vault.example", "is not an address"),
    "no port": address("https://vault.example:port", "is not an address"),
    "no host": Row(
        UnavailableError, "the host does not exist", environ={"VAULT_ADDR": "https://vault.invalid"}
    ),
    "an API's path": Row(SecretNotFoundError, body="secret/data/app/db", remedy="leave data/ out"),
    "a version of an engine without": Row(UnsupportedError, body="kv1/a?version=1"),
    **{
        f"the path {body}": Row(ReferenceValueError, body=body, calls=0)
        for body in ("", "secret", "secret//a", "secret/../sys/a")
    },
    **{
        f"the version {version}": Row(
            ReferenceValueError, body=f"secret/a?version={version}", calls=0
        )
        for version in ("0", "x")
    },
}
ROWS = {**APART, **MORE}


@pytest.fixture
def table(bao: Bao, front: FrontDoor, tmp_path: Path) -> Table:
    token = bao.token(bao.policy("app-and-kv1", "secret/data/app/*", "secret/data/data/*", "kv1/*"))
    environ = {"VAULT_ADDR": front.base_url, "VAULT_TOKEN": token, "HOME": str(tmp_path)}
    return Table("vault", "secret/app/db", environ, front, secrets=(token, "Canary-wrong"))


@pytest.mark.parametrize("name", ROWS)
def test_a_failure_reads_as_what_it_is(name: str, table: Table) -> None:
    table.tell(ROWS[name])


def test_what_needs_another_next_step_is_told_apart(table: Table) -> None:
    table.tell_apart(APART)


def test_a_token_that_ends_is_no_token_without_permission(
    bao: Bao, registry_of: Registries, table: Table
) -> None:
    revoked, counted = bao.token("app"), bao.token("app", num_uses=1)
    bao.call("POST", "auth/token/revoke", {"token": revoked})
    table.tell(Row(BackendAuthError, GONE, environ={"VAULT_TOKEN": revoked}))
    assert values(registry_of({"VAULT_TOKEN": counted}), "vault:secret/app/db#user") == ["app"]
    table.tell(Row(BackendAuthError, GONE, environ={"VAULT_TOKEN": counted}))


@pytest.mark.parametrize("status", [404, 405, 500, 503])
def test_a_token_that_cannot_be_looked_up_is_taken_for_valid(
    table: Table, front: FrontDoor, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    """Not every Vault has that call: then its own refusal is told."""
    answer = front.answer

    def refuse_lookup(asked: Asked) -> Reply:
        is_lookup = asked.path.endswith("/mounts/sealpipe")
        return Reply(status, {"errors": []}) if is_lookup else answer(asked)

    monkeypatch.setattr(front, "answer", refuse_lookup)
    table.tell(APART["denied"])
    assert any(asked.path.endswith("/mounts/sealpipe") for asked in front.asked)
