"""What goes wrong at Azure Key Vault and at Microsoft's login, and how each is told."""

from __future__ import annotations

import pytest

from plugins.azure_key_vault.conftest import DEFAULT
from plugins.azure_key_vault.fake_key_vault import (
    EXPIRED,
    FORBIDDEN,
    HOST,
    OTHER_TENANT,
    SECRET,
    TOKEN,
    FakeKeyVault,
)
from sealpipe.errors import (
    AccessDeniedError,
    BackendAuthError,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    UnavailableError,
)
from sealpipe.testing.contract import CANARY
from support.ci_jobs import job_token
from support.failures import Row, Table
from support.fake_web import Reply, drop

STRANGER = {  # a job that another audience trusts
    "AZURE_CLIENT_SECRET": "",
    "CIRCLECI": "true",
    "CIRCLE_OIDC_TOKEN_V2": job_token("another"),
    f"{DEFAULT}AUDIENCE": "another",
}


def says(status: int, inner: str = "") -> Reply:
    error = {"code": CANARY, "message": CANARY, "innererror": {"code": inner}}
    return Reply(status, {"error": error, "value": CANARY})


def token(**members: object) -> Reply:
    granted = {"access_token": CANARY, "token_type": "Bearer", "expires_in": 1}
    return Reply(200, {**granted, **members})


def version(name: str) -> str:
    return f"db?version={name}"


APART = {
    "nothing": Row(SecretNotFoundError, "does not exist", "nothing"),
    "deleted": Row(SecretNotFoundError, "is deleted and can be recovered", "gone"),
    "disabled": Row(SecretNotFoundError, "is disabled", "off"),
    "denied": Row(AccessDeniedError, "secrets/get", f"{FORBIDDEN}"),
    "firewall": Row(AccessDeniedError, "firewall", answer=says(403, "ForbiddenByFirewall")),
    "no vault": Row(
        NotConfiguredError,
        "names no vault",
        remedy="azure-kv:VAULT/db",
        environ={f"{DEFAULT}URL": ""},
    ),
    "expired login": Row(
        BackendAuthError, "has expired (AADSTS7000222)", environ={"AZURE_CLIENT_SECRET": EXPIRED}
    ),
    "wrong login": Row(
        BackendAuthError, "is wrong (AADSTS7000215)", environ={"AZURE_CLIENT_SECRET": "wrong"}
    ),
    "wrong account": Row(
        BackendAuthError, "no such application", environ={"AZURE_CLIENT_ID": "another"}
    ),
    "wrong tenant": Row(
        NotConfiguredError,
        "the tenant does not exist",
        environ={"AZURE_TENANT_ID": "nobody.example"},
    ),
    "a job that is not trusted": Row(
        BackendAuthError, "does not trust the CI's token", environ=STRANGER
    ),
}
MORE = {
    "no version": Row(SecretNotFoundError, "no such version", version("0" * 32)),
    "no such version": Row(ReferenceValueError, "version=", version("1"), calls=0),
    "400": Row(ReferenceValueError, "rejects the name", answer=says(400)),
    "401": Row(BackendAuthError, "refused the token", answer=says(401)),
    "500": Row(UnavailableError, "failed", answer=says(500)),
    "another's answer": Row(PluginError, "is not Azure Key Vault's", answer=says(200)),
    "418": Row(PluginError, "refused", remedy=None, answer=says(418)),
    "no client": Row(NotConfiguredError, "no client_id", environ={"AZURE_CLIENT_ID": ""}),
    "no encryption": Row(
        NotConfiguredError,
        "must be an https address",
        environ={"AZURE_AUTHORITY_HOST": "http://login.example"},
    ),
    "no job": Row(NotConfiguredError, environ={"AZURE_CLIENT_SECRET": ""}),
    **{
        f"the name {body}": Row(ReferenceValueError, "is not a valid name", body, calls=0)
        for body in ("", "a/b/c", "A B", "v/", "a_b", "../x", "x/y", "-v/n", f"{HOST}/db", "v/é")
    },
    **{
        f"no challenge {number}": Row(
            NotConfiguredError, "is not Azure Key Vault", answer=answer, at=""
        )
        for number, answer in enumerate(
            (Reply(200, {}), Reply(401, {}), Reply(401, {}, {"www-authenticate": "Basic realm=x"}))
        )
    },
    **{
        f"a login that is {name}": Row(
            UnavailableError, answer=answer, at="-configuration", calls=2
        )
        for name, answer in (("503", Reply(503)), ("429", Reply(429)), ("lost", drop))
    },
    **{
        f"a login of {number}": Row(
            BackendAuthError, "Microsoft refused the login", answer=answer, at="/token"
        )
        for number, answer in enumerate(
            (
                *(token(expires_in=odd) for odd in (float("inf"), [])),
                token(id_token="x"),
                *(Reply(200, odd) for odd in ({"expires_in": 1}, CANARY, {"error": CANARY})),
                *(Reply(200, odd) for odd in ({"error_codes": "odd"}, [])),
            )
        )
    },
}
ROWS = {**APART, **MORE}


@pytest.fixture
def table(azure: FakeKeyVault, environ: dict[str, str]) -> Table:
    azure.hold("db", "x")
    azure.hold("gone", "x").deleted = True
    azure.hold("off", "x", attributes={"enabled": False})
    return Table("azure-kv", "db", environ, azure, "/secrets/db", (TOKEN, SECRET, EXPIRED))


@pytest.mark.parametrize("name", ROWS)
def test_a_failure_reads_as_what_it_is(name: str, table: Table) -> None:
    table.tell(ROWS[name])


def test_what_needs_another_next_step_is_told_apart(table: Table) -> None:
    table.tell_apart(APART)


def test_a_token_goes_to_no_server_that_wants_one_for_others(
    azure: FakeKeyVault, table: Table
) -> None:
    azure.resource = "https://vault.azure.net"
    table.tell(Row(NotConfiguredError, "for another service", calls=1))
    assert azure.tokens == {}


def test_a_vault_of_another_tenant_is_told(azure: FakeKeyVault, table: Table) -> None:
    azure.tenant = OTHER_TENANT
    table.tell(Row(NotConfiguredError, "belongs to another tenant"))
