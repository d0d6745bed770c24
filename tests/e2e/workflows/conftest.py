"""Fixtures: a repository whose workflows act runs, and what its jobs meet: the service, a Vault, a
mail server.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from e2e.workflows.act import Repository
from sealpipe_rehearsal.running_service import RunningService
from support.ci_jobs import endpoint
from support.mailbox import PASSWORD, USER, Mailbox
from support.openbao import Bao, dev_server
from support.parts import ROOT
from support.terminal import extended, one_service, service

__all__ = ["endpoint", "extended", "one_service", "service"]

VAULT = ROOT / "docs/how-to/ci/vault"
CLAIMS = {"iss": "ci.example", "repository": "acme/app", "environment": "handover"}


@pytest.fixture(scope="module")
def bao() -> Iterator[Bao]:
    with dev_server() as running:
        yield running


@pytest.fixture(scope="module")
def issuer(bao: Bao) -> rsa.RSAPrivateKey:
    """The key of the CI. The Vault trusts it, and has the policies and the roles of
    docs/how-to/ci/vault.
    """
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    bao.call("POST", "sys/auth/github", {"type": "jwt"})
    bao.call(
        "POST",
        "auth/github/config",
        {"jwt_validation_pubkeys": [public.decode()], "bound_issuer": CLAIMS["iss"]},
    )
    for name in ("handover", "collect"):
        policy = (VAULT / f"policy-{name}.hcl").read_text(encoding="utf-8")
        bao.call("PUT", f"sys/policies/acl/{name}", {"policy": policy})
        role = (VAULT / f"role-{name}.json").read_text(encoding="utf-8")
        role = role.replace("OWNER/REPOSITORY", "acme/app").replace(
            "https://vault.example.com:8200", bao.addr
        )
        bao.call("POST", f"auth/github/role/{name}", json.loads(role))
    return key


@pytest.fixture
def job_token(endpoint: Callable[..., dict[str, str]], issuer: rsa.RSAPrivateKey) -> dict[str, str]:
    """The variables by which a job with `id-token: write` asks for its own token."""

    def answer(query: dict[str, list[str]], _bearer: str) -> tuple[int, bytes]:
        now, (audience,) = int(time.time()), query["audience"]
        claims: dict[str, Any] = {**CLAIMS, "aud": audience, "iat": now, "exp": now + 300}
        return 200, json.dumps({"value": jwt.encode(claims, issuer, algorithm="RS256")}).encode()

    given = endpoint(answer)
    return {name: value for name, value in given.items() if name.startswith("ACTIONS_ID_TOKEN_")}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


@pytest.fixture
def key(service: RunningService) -> str:
    return service.create_key().reveal()


@pytest.fixture
def mailbox(tmp_path: Path) -> Iterator[Mailbox]:
    with Mailbox(tmp_path) as running:
        yield running


@pytest.fixture
def mail(mailbox: Mailbox) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """What a workflow needs to send mail: variables, secrets, and what only this mail server
    needs.
    """
    variables = {"MAIL_HOST": mailbox.host, "MAIL_USER": USER, "MAIL_SENDER": "ci@acme.example"}
    own = {
        "SEALPIPE_PLUGIN_EMAIL__PORT": str(mailbox.port),
        "SEALPIPE_CA_FILE": str(mailbox.ca_file),
    }
    return variables, {"MAIL_PASSWORD": PASSWORD}, own
