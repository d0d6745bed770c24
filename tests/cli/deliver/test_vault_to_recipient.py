"""One line in a script: a secret of Vault's, mailed as a link.

The real OpenBao, rehearsal service and mail server.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from sealpipe import Client
from sealpipe_rehearsal.running_service import RunningService
from support.ci_jobs import GITLAB, Answer, endpoint
from support.mailbox import Mailbox
from support.openbao import Bao, dev_server
from support.terminal import Done, Terminal, created, opened

__all__ = ["endpoint"]

Login = dict[str, str]
Endpoint = Callable[[Answer], Login]

VALUE = f"canary-{secrets.token_hex(12)}"
AUDIENCE = "https://vault.acme.example/?ci&x"
WORDS = [
    "share",
    "-f",
    "Password=vault:secret/app/db#password",
    "--send",
    "email:{to}",
    "--param",
    "to=env:RECIPIENT",
]


@pytest.fixture(scope="module")
def bao() -> Iterator[Bao]:
    with dev_server() as running:
        running.call("POST", "secret/data/app/db", {"data": {"password": VALUE}})
        running.policy("app", "secret/data/app/*")
        yield running


@pytest.fixture(scope="module")
def approle(bao: Bao) -> Login:
    bao.call("POST", "sys/auth/approle", {"type": "approle"})
    bao.call("POST", "auth/approle/role/ci", {"token_policies": ["app"], "token_ttl": "20m"})
    role_id = bao.call("GET", "auth/approle/role/ci/role-id")["role_id"]
    return {
        "VAULT_ROLE_ID": role_id,
        "VAULT_SECRET_ID": bao.call("POST", "auth/approle/role/ci/secret-id")["secret_id"],
    }


@pytest.fixture(scope="module")
def issuer(bao: Bao) -> rsa.RSAPrivateKey:
    """The key of the CI, whose tokens for one repository and one audience Vault takes."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    bao.call("POST", "sys/auth/github", {"type": "jwt"})
    bao.call(
        "POST",
        "auth/github/config",
        {"jwt_validation_pubkeys": [public.decode()], "bound_issuer": "ci.example"},
    )
    role = {
        "role_type": "jwt",
        "user_claim": "sub",
        "bound_audiences": [AUDIENCE],
        "token_policies": ["app"],
    }
    bao.call(
        "POST", "auth/github/role/deploy", {**role, "bound_claims": {"repository": "acme/app"}}
    )
    return key


class Job:
    """A job of GitHub's: its endpoint makes a token for whatever audience it is asked for."""

    def __init__(self, endpoint: Endpoint, issuer: rsa.RSAPrivateKey) -> None:
        self.issuer = issuer
        self.claims: dict[str, Any] = {"repository": "acme/app"}
        self.made: list[tuple[str, str]] = []
        vault = {"VAULT_AUTH_ROLE": "deploy", "VAULT_AUTH_PATH": "github"}
        self.environ = {
            **endpoint(self.answer),
            **vault,
            "SEALPIPE_PLUGIN_VAULT__AUDIENCE": AUDIENCE,
        }

    def answer(self, query: dict[str, list[str]], bearer: str) -> tuple[int, bytes]:
        now, (audience,) = int(time.time()), query["audience"]
        usual = {
            "iss": "ci.example",
            "sub": "repo:acme/app",
            "aud": audience,
            "iat": now,
            "exp": now + 300,
        }
        token = jwt.encode({**usual, **self.claims}, self.issuer, algorithm="RS256")
        self.made.append((bearer, token))
        return 200, json.dumps({"value": token}).encode()


@pytest.fixture
def job(endpoint: Endpoint, issuer: rsa.RSAPrivateKey) -> Job:
    return Job(endpoint, issuer)


@pytest.fixture
def mailbox(tmp_path: Path) -> Iterator[Mailbox]:
    with Mailbox(tmp_path) as running:
        yield running


@pytest.fixture
def script(user: Terminal, bao: Bao, mailbox: Mailbox) -> Terminal:
    """Where the line stands: it knows the service, Vault and the mail server, and has no login at
    Vault yet.
    """
    user.environ |= {
        "VAULT_ADDR": bao.addr,
        **mailbox.environ(),
        "RECIPIENT": "ann@example.com",
    }
    return user


def sessions(bao: Bao) -> set[str]:
    return set(bao.call("LIST", "auth/token/accessors")["keys"])


def the_mail_opens(done: Done, mailbox: Mailbox, service: RunningService) -> None:
    """The link went to one address, stands nowhere else, and gives what Vault has."""
    assert (done.code, done.out) == (0, ""), done
    [mail] = mailbox.received
    assert (mail.recipients, mail.encrypted) == (["ann@example.com"], True)
    text = next(mail.mail.iter_parts()).get_content()
    [link] = [line for line in text.splitlines() if line.startswith("http")]
    assert link.partition("#")[2] not in done.err
    assert VALUE not in done.err + mail.content.decode()
    assert opened(service, link) == {"Password": VALUE}


def test_with_approle_the_secret_reaches_its_recipient_and_the_login_ends(
    script: Terminal, approle: Login, bao: Bao, mailbox: Mailbox, service: RunningService
) -> None:
    before = sessions(bao)
    done = script.sealpipe(*WORDS, **approle)
    the_mail_opens(done, mailbox, service)
    assert approle["VAULT_SECRET_ID"] not in done.err
    assert sessions(bao) == before
    assert script.outbox() == []


def test_with_the_jobs_own_token_no_login_is_stored_anywhere(
    script: Terminal, job: Job, bao: Bao, mailbox: Mailbox, service: RunningService
) -> None:
    before = sessions(bao)
    done = script.sealpipe(*WORDS, **job.environ)
    the_mail_opens(done, mailbox, service)
    [(bearer, token)] = job.made
    assert bearer == "bearer runner-bearer"
    assert jwt.decode(token, options={"verify_signature": False})["aud"] == AUDIENCE
    assert token not in done.err
    assert "runner-bearer" not in done.err
    assert sessions(bao) == before


def test_a_job_of_gitlabs_declares_its_token(
    script: Terminal, issuer: rsa.RSAPrivateKey, mailbox: Mailbox, service: RunningService
) -> None:
    now = int(time.time())
    claims = {
        "iss": "ci.example",
        "sub": "x",
        "aud": AUDIENCE,
        "repository": "acme/app",
        "iat": now,
        "exp": now + 300,
    }
    token = jwt.encode(claims, issuer, algorithm="RS256")
    vault = {
        "VAULT_AUTH_ROLE": "deploy",
        "VAULT_AUTH_PATH": "github",
        "SEALPIPE_PLUGIN_VAULT__AUDIENCE": AUDIENCE,
    }
    done = script.sealpipe(*WORDS, **GITLAB, **vault, VAULT_ID_TOKEN=token)
    the_mail_opens(done, mailbox, service)
    assert token not in done.err


def test_a_program_does_the_same(
    script: Terminal,
    approle: Login,
    bao: Bao,
    mailbox: Mailbox,
    service: RunningService,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {**script.environ, **approle}.items():
        monkeypatch.setenv(name, value)
    before = sessions(bao)
    with Client.from_settings() as client:
        share = client.share([WORDS[2]], send=["email:{to}"], params={"to": "env:RECIPIENT"})
    [mail] = mailbox.received
    assert mail.recipients == ["ann@example.com"]
    assert opened(service, share.link.reveal()) == {"Password": VALUE}
    assert sessions(bao) == before


def test_a_job_of_another_repository_gets_nothing(
    script: Terminal, job: Job, mailbox: Mailbox, service: RunningService
) -> None:
    job.claims["repository"] = "mallory/app"
    done = script.sealpipe(*WORDS, "--output", "json", **job.environ)
    assert (done.code, done.out) == (14, ""), done
    assert "claims do not match" in done.error["message"]
    [(_, token)] = job.made
    assert token not in done.err
    assert (mailbox.received, created(service)) == ([], [])


def test_an_error_names_the_permission_that_the_job_lacks(
    script: Terminal, job: Job, service: RunningService
) -> None:
    script.environ |= job.environ
    done = script.sealpipe(
        *WORDS, ACTIONS_ID_TOKEN_REQUEST_URL=None, ACTIONS_ID_TOKEN_REQUEST_TOKEN=None
    )
    assert (done.code, done.out) == (14, ""), done
    assert "vault:secret/app/db" in done.err
    assert "id-token: write" in done.err
    assert created(service) == []


@pytest.mark.parametrize(
    "recipient",
    [
        "ann@example.com,eve@evil.example",
        "ann@example.com\nBcc: eve@evil.example",
        "ann@example.com?cc=eve@evil.example",
    ],
    ids=["a comma", "a newline", "a query"],
)
@pytest.mark.parametrize("login", ["approle", "job"])
def test_a_recipient_who_is_more_than_one_changes_nothing_but_gets_an_error(
    script: Terminal,
    request: pytest.FixtureRequest,
    bao: Bao,
    mailbox: Mailbox,
    service: RunningService,
    login: str,
    recipient: str,
) -> None:
    given = request.getfixturevalue(login)
    before = sessions(bao)
    done = script.sealpipe(
        *WORDS, **(given if login == "approle" else given.environ), RECIPIENT=recipient
    )
    assert (done.code, done.out) == (2, ""), done
    assert "evil" not in done.err
    assert (mailbox.received, created(service), script.outbox()) == ([], [], [])
    assert sessions(bao) == before
    assert login == "approle" or given.made == [], "not even a token was asked for"
