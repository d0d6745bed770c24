"""What goes wrong at Doppler, and how each is told."""

from __future__ import annotations

import pytest

from plugins.doppler.fake_doppler import ACCOUNT, IDENTITY, SERVICE, FakeDoppler, Token
from sealpipe.errors import (
    AccessDeniedError,
    BackendAuthError,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    UnsupportedError,
)
from sealpipe.testing.contract import CANARY
from support.ci_jobs import job_token
from support.failures import Row, Table
from support.fake_web import Reply

READS = "dp.st.reads"
STORE = "SEALPIPE_STORE__OTHER__"
JOB = {
    "GITLAB_CI": "true",
    "VAULT_ID_TOKEN": job_token("doppler", "another"),
    f"{STORE}IDENTITY": IDENTITY,
    f"{STORE}AUDIENCE": "doppler",
}


def token(text: str, **more: str) -> dict[str, str]:
    return {"DOPPLER_TOKEN": text, **more}


APART = {
    "no config": Row(
        SecretNotFoundError, "has no app/none, or hides it from this token", "app/none"
    ),
    "denied": Row(AccessDeniedError, "does not let this token read hidden/dev", "hidden/dev"),
    "another config's token": Row(
        AccessDeniedError,
        "the service token is another config's",
        "app/prd",
        environ=token(SERVICE),
    ),
    "expired token": Row(
        BackendAuthError, "refused the token", environ=token(ACCOUNT.replace("acco", "gone"))
    ),
    "a job that is not trusted": Row(
        BackendAuthError, "refused the login by OIDC", "other:app/dev", environ=JOB
    ),
    "no token": Row(NotConfiguredError, "no Doppler token is set for doppler", environ=token("")),
    "two logins": Row(
        NotConfiguredError,
        "both a Doppler token and an identity",
        environ={"SEALPIPE_PLUGIN_DOPPLER__IDENTITY": IDENTITY},
    ),
    "no names": Row(ReferenceValueError, "names no config", ""),
    "raw": Row(ReferenceValueError, "raw= is 0 or 1", "app/dev?raw=yes"),
    "another's answer": Row(
        PluginError, "Doppler sent an unexpected response", answer=Reply(200, "not JSON")
    ),
}
MORE = {
    "no project": Row(SecretNotFoundError, "has no none/dev", "none/dev"),
    "another project's token": Row(
        AccessDeniedError,
        "the service token is another config's",
        "other/dev",
        environ=token(SERVICE),
    ),
    **{
        f"the name {body}": Row(
            ReferenceValueError, "does not name a project and a config", body, calls=0
        )
        for body in ("app", "app/dev/PW")
    },
    "an odd token": Row(
        NotConfiguredError, "contains invalid characters", environ=token("two words and a third")
    ),
    "a named store with our variables": Row(NotConfiguredError, body="other:app/dev"),
    **{
        f"an answer with {odd}": Row(
            PluginError, "Doppler sent an unexpected response", answer=Reply(200, {"secrets": odd})
        )
        for odd in (1, {"A": "x"}, {"A": {"raw": 1}})
    },
    "a token that only reads": Row(
        AccessDeniedError,
        "does not let this token write app/dev",
        put={"PW": CANARY},
        environ=token(READS),
    ),
    **{
        f"a change that is {status}": Row(
            UnsupportedError,
            "rejects the change",
            remedy="locked",
            put={"NEW": CANARY},
            answer=Reply(status, {"messages": [CANARY]}),
            at="configs/config/secrets",
            method="POST",
        )
        for status in (400, 409, 422)
    },
    **{
        f"the key {name[:9]}": Row(ReferenceValueError, put={name: CANARY}, calls=0)
        for name in ("lower", "1ST", "A-B", "DOPPLER_CONFIG", "", "A" * 201)
    },
}
ROWS = {**APART, **MORE}


@pytest.fixture
def table(fake: FakeDoppler) -> Table:
    fake.config("app", "dev")
    fake.config("app", "prd", PW=CANARY)
    fake.config("hidden", "dev", PW=CANARY)
    fake.identities[IDENTITY] = job_token("doppler")
    fake.tokens[READS] = Token("service_token", ("app", "dev"), writes=False)
    environ = {
        "DOPPLER_API_HOST": fake.base_url,
        "DOPPLER_TOKEN": ACCOUNT,
        f"{STORE}PLUGIN": "doppler",
        f"{STORE}API_HOST": fake.base_url,
    }
    return Table("doppler", "app/dev", environ, fake, secrets=(ACCOUNT, SERVICE, READS))


@pytest.mark.parametrize("name", ROWS)
def test_a_failure_reads_as_what_it_is(name: str, table: Table, fake: FakeDoppler) -> None:
    table.tell(ROWS[name])
    assert fake.configs["app", "dev"] == {}, "nothing is stored"


def test_what_needs_another_next_step_is_told_apart(table: Table) -> None:
    table.tell_apart(APART)
