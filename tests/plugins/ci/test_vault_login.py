"""A share from a real OpenBao, by the token of the job that it runs in: no secret is stored in the
CI system.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import jwt as pyjwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from plugins.ci.fakes import FakeAzure, FakePrograms
from sealpipe_rehearsal.running_service import RunningService
from support.ci_jobs import AZURE, BITBUCKET, BUILDKITE, CIRCLECI, JENKINS
from support.openbao import Bao, dev_server
from support.terminal import ABROAD, Terminal, opened

AZURES = "api://AzureADTokenExchange"
Sign = Callable[..., str]
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture(scope="module")
def bao() -> Iterator[Bao]:
    public = KEY.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    with dev_server() as bao:
        bao.call("POST", "secret/data/app/db", {"data": {"password": "canary-of-the-vault"}})
        bao.policy("app", "secret/data/app/*")
        bao.call("POST", "sys/auth/jwt", {"type": "jwt"})
        bao.call(
            "POST",
            "auth/jwt/config",
            {"jwt_validation_pubkeys": [public.decode()], "bound_issuer": "ci"},
        )
        role = {
            "role_type": "jwt",
            "user_claim": "sub",
            "bound_audiences": ["vault", AZURES],
            "token_policies": ["app"],
        }
        bao.call("POST", "auth/jwt/role/deploy", role)
        yield bao


def sign(*audiences: str, seconds: int = 300) -> str:
    now = int(time.time())
    claims = {
        "iss": "ci",
        "sub": "job",
        "aud": list(audiences),
        "iat": now,
        "nbf": now - 9,
        "exp": now + seconds,
    }
    return pyjwt.encode(claims, KEY, algorithm="RS256")


def job(name: str, programs: FakePrograms, azure: FakeAzure) -> dict[str, str]:
    """A job that has a token for the audience, as its system gives one."""
    programs.set({"vault": sign("vault")})
    azure.token = sign(AZURES)
    jobs = {
        "azure": AZURE | azure.environ | {"SEALPIPE_PLUGIN_VAULT__AUDIENCE": AZURES},
        "bitbucket": BITBUCKET
        | {"BITBUCKET_STEP_OIDC_TOKEN": sign("ari:cloud:bitbucket::workspace/1", "vault")},
        "buildkite": BUILDKITE | programs.path,
        "circleci": CIRCLECI | programs.path | {"CIRCLE_OIDC_TOKEN_V2": sign("an-organization")},
        "jenkins": JENKINS | {"ID_TOKEN": sign("vault")},
    }
    return {"SEALPIPE_PLUGIN_VAULT__AUDIENCE": "vault", **jobs[name]}


@pytest.fixture
def azure() -> Iterator[FakeAzure]:
    with FakeAzure("") as fake:
        yield fake


@pytest.mark.parametrize("name", ["azure", "bitbucket", "buildkite", "circleci", "jenkins"])
def test_a_job_shares_from_vault_by_its_own_token(
    name: str,
    user: Terminal,
    service: RunningService,
    bao: Bao,
    programs: FakePrograms,
    azure: FakeAzure,
) -> None:
    environ = {
        "VAULT_ADDR": bao.addr,
        "VAULT_AUTH_ROLE": "deploy",
        **job(name, programs, azure),
        **ABROAD,
    }
    done = user.sealpipe("share", "-f", "vault:secret/app/db#password", "--print", **environ)
    assert done.code == 0, done
    assert opened(service, done.out.strip()) == {"password": "canary-of-the-vault"}
    assert not any(
        token in done.err
        for token in json.loads((programs.folder / "tokens.json").read_text()).values()
    )


def test_a_token_that_vault_refuses_is_told_with_its_reason(
    user: Terminal, service: RunningService, bao: Bao
) -> None:
    expired = sign("vault", seconds=-200)
    environ = {
        "VAULT_ADDR": bao.addr,
        "VAULT_AUTH_ROLE": "deploy",
        "BITBUCKET_STEP_OIDC_TOKEN": expired,
    }
    done = user.sealpipe(
        "share", "-f", "vault:secret/app/db#password", "--print", **BITBUCKET, **environ, **ABROAD
    )
    assert (done.code, service.seen()) == (14, []), done
    assert "expired" in done.err
    assert expired not in done.err
