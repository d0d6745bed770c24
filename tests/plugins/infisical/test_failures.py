"""What goes wrong at Infisical, and how each is told."""

from __future__ import annotations

import pytest

from plugins.infisical.fake_infisical import (
    CLIENT_ID,
    CLIENT_SECRET,
    IDENTITY,
    PROJECT,
    TOKEN,
    FakeInfisical,
)
from sealpipe.errors import (
    AccessDeniedError,
    BackendAuthError,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
)
from sealpipe.testing.contract import CANARY
from support.ci_jobs import job_token
from support.failures import Row, Table
from support.fake_web import Reply

EXPIRED = "eyGn2.expired.Kd7sWq1zXc5v"
DEV = f"{PROJECT}/dev"
STORE = "SEALPIPE_STORE__OTHER__"
AUTH = "INFISICAL_UNIVERSAL_AUTH_CLIENT_"
BY_SECRET = {"INFISICAL_TOKEN": "", f"{AUTH}ID": CLIENT_ID, f"{AUTH}SECRET": CLIENT_SECRET}
BY_JOB = {
    f"{STORE}IDENTITY_ID": IDENTITY,
    f"{STORE}AUDIENCE": "infisical",
    "GITLAB_CI": "true",
    "VAULT_ID_TOKEN": job_token("infisical", "another"),
}
ODD = "Infisical sent an unexpected response"


def secret(**members: object) -> dict[str, object]:
    return {"secretKey": "A", "secretValue": "x", **members}


APART = {
    "no folder": Row(
        SecretNotFoundError, "this folder has no secrets, or does not exist", f"{DEV}/none"
    ),
    "no project": Row(
        SecretNotFoundError, "has no no-such-slug/dev, or hides it", "no-such-slug/dev"
    ),
    "denied": Row(
        AccessDeniedError, "does not let this identity read other-project/dev", "other-project/dev"
    ),
    "expired token": Row(BackendAuthError, environ={"INFISICAL_TOKEN": EXPIRED}),
    "wrong login": Row(
        BackendAuthError,
        "refused the login by Universal Auth",
        environ={**BY_SECRET, f"{AUTH}SECRET": "another"},
    ),
    "a job that is not trusted": Row(
        BackendAuthError, body=f"other:{DEV}", environ=BY_JOB, remedy="audience"
    ),
    "no login": Row(
        NotConfiguredError, "has no login for Infisical", environ={"INFISICAL_TOKEN": ""}
    ),
    "raw": Row(ReferenceValueError, "raw= is 0 or 1", f"{DEV}?raw=2"),
    "another's answer": Row(PluginError, ODD, answer=Reply(200, "not JSON")),
}
MORE = {
    "two logins": Row(
        NotConfiguredError,
        "has several logins for Infisical",
        environ={"INFISICAL_MACHINE_IDENTITY_ID": IDENTITY},
    ),
    "a denied environment": Row(
        AccessDeniedError, "does not let this identity read", f"{PROJECT}/prod"
    ),
    **{
        f"the name {body}": Row(
            ReferenceValueError, "does not name a project and an environment", body
        )
        for body in (PROJECT, f"{DEV}/../x")
    },
    **{
        f"half a login without {lacks}": Row(
            NotConfiguredError,
            f"lacks its client_{lacks}",
            environ={**BY_SECRET, f"{AUTH}{lacks.upper()}": ""},
        )
        for lacks in ("id", "secret")
    },
    "a named store with our variables": Row(
        NotConfiguredError, "other has no login for Infisical", f"other:{DEV}"
    ),
    **{
        f"an answer of {odd}": Row(PluginError, ODD, answer=Reply(200, odd))
        for odd in (
            {"secrets": 1},
            {"secrets": ["x"]},
            {"secrets": [secret(secretValue=1)]},
            {"secrets": [secret(secretMetadata=["y"])]},
            {"secrets": [], "imports": [1]},
        )
    },
    **{
        f"a login for {seconds} seconds": Row(
            PluginError,
            ODD,
            environ=BY_SECRET,
            answer=Reply(200, {"accessToken": TOKEN, "expiresIn": seconds}),
        )
        for seconds in (float("nan"), float("inf"), 10**40, "x")
    },
    "a folder to write in that does not exist": Row(
        SecretNotFoundError, body=f"{DEV}/none", put={"PW": CANARY}
    ),
    **{
        f"the key {name[:9]}": Row(ReferenceValueError, put={name: CANARY}, calls=0)
        for name in ("", "1ST", "a/b", "a:b", "a b", "A" * 201)
    },
}
ROWS = {**APART, **MORE}


@pytest.fixture
def table(fake: FakeInfisical) -> Table:
    fake.folder("dev", "/")
    fake.denied.add(("prod", "/"))
    fake.expired.add(EXPIRED)
    fake.identities[IDENTITY] = job_token("infisical")
    environ = {
        "INFISICAL_API_URL": fake.base_url,
        "INFISICAL_TOKEN": TOKEN,
        f"{STORE}PLUGIN": "infisical",
        f"{STORE}URL": fake.base_url,
    }
    return Table("infisical", DEV, environ, fake, secrets=(TOKEN, EXPIRED, CLIENT_SECRET))


@pytest.mark.parametrize("name", ROWS)
def test_a_failure_reads_as_what_it_is(name: str, table: Table, fake: FakeInfisical) -> None:
    table.tell(ROWS[name])
    assert fake.folders == {("dev", "/"): {}}, "nothing is stored"


def test_what_needs_another_next_step_is_told_apart(table: Table) -> None:
    table.tell_apart(APART)


def test_an_identity_that_only_reads_is_denied(table: Table, fake: FakeInfisical) -> None:
    fake.reads_only = True
    table.tell(Row(AccessDeniedError, "does not let this identity write", put={"PW": CANARY}))
