"""Ways to log in, what each lacks or is refused for, and what becomes of the token."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jwt as pyjwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from plugins.vault.conftest import Registries
from plugins.vault.storing import values
from sealpipe.errors import BackendAuthError, NotConfiguredError, SettingError
from sealpipe.network.plugin_network import PluginNetwork
from sealpipe.registry import Registry
from support.backends import failed
from support.fake_web import FrontDoor
from support.openbao import Bao

REF = "vault:secret/app/db#password"
P = "SEALPIPE_PLUGIN_VAULT__"
Login = Mapping[str, str]


@pytest.fixture(scope="module")
def approle(one_bao: Bao) -> Login:
    one_bao.call("POST", "auth/approle/role/ci", {"token_policies": ["app"], "token_ttl": "20m"})
    role_id = one_bao.call("GET", "auth/approle/role/ci/role-id")["role_id"]
    secret_id = one_bao.call("POST", "auth/approle/role/ci/secret-id")["secret_id"]
    return {"VAULT_ROLE_ID": role_id, "VAULT_SECRET_ID": secret_id}


@pytest.fixture(scope="module")
def userpass(one_bao: Bao) -> Login:
    one_bao.call("POST", "sys/auth/people", {"type": "userpass"})
    one_bao.call(
        "POST", "auth/people/users/bob-1.x", {"password": "pass/word?", "token_policies": ["app"]}
    )
    return {f"{P}USERNAME": "bob-1.x", f"{P}PASSWORD": "pass/word?", "VAULT_AUTH_PATH": "people"}


Signed = Callable[..., str]


@pytest.fixture(scope="module")
def signed(one_bao: Bao) -> Signed:
    """Makes tokens as a CI signs them."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    one_bao.call("POST", "sys/auth/jwt", {"type": "jwt"})
    one_bao.call(
        "POST",
        "auth/jwt/config",
        {"jwt_validation_pubkeys": [public.decode()], "bound_issuer": "ci"},
    )
    role = {
        "role_type": "jwt",
        "user_claim": "sub",
        "bound_audiences": ["vault"],
        "token_policies": ["app"],
    }
    one_bao.call(
        "POST",
        "auth/jwt/role/deploy",
        {**role, "bound_claims": {"project": "p1"}, "token_ttl": "10m"},
    )

    def sign(by: rsa.RSAPrivateKey = key, **claims: Any) -> str:
        now = int(time.time())
        usual = {
            "iss": "ci",
            "sub": "job",
            "aud": "vault",
            "project": "p1",
            "iat": now,
            "exp": now + 300,
        }
        return pyjwt.encode({**usual, **claims}, by, algorithm="RS256")

    return sign


def sessions(bao: Bao) -> set[str]:
    """The accessors of all tokens that live."""
    return set(bao.call("LIST", "auth/token/accessors")["keys"])


def test_a_token_is_taken_from_where_vaults_users_put_it(
    bao: Bao, registry_of: Registries, tmp_path: Path
) -> None:
    token = bao.token("app")
    file = tmp_path / "token"
    file.write_text(f"{token}\n")
    assert values(registry_of({"VAULT_TOKEN": token}), REF) == ["s3cret"]
    assert values(registry_of({f"{P}TOKEN_FILE": str(file)}), REF) == ["s3cret"]
    (tmp_path / ".vault-token").write_text(token)
    assert values(registry_of({"HOME": str(tmp_path)}), REF) == ["s3cret"]


def test_openbaos_variables_serve_beside_vaults_and_may_not_differ(bao: Bao) -> None:
    network = PluginNetwork(None)

    def read(environ: Mapping[str, str]) -> list[Any]:
        return values(Registry(environ=environ, network=lambda: network), REF)

    token = bao.token("app")
    openbao, vault = (
        {"BAO_ADDR": bao.addr, "BAO_TOKEN": token},
        {"VAULT_ADDR": bao.addr, "VAULT_TOKEN": token},
    )
    assert (
        read(openbao)
        == read({**openbao, **vault})
        == read({**openbao, "VAULT_ADDR": bao.addr})
        == ["s3cret"]
    )
    for name in ("ADDR", "TOKEN"):
        with pytest.raises(SettingError) as refused:
            read({**openbao, **vault, f"VAULT_{name}": "http://127.0.0.1:1"})
        assert refused.value.message == f"VAULT_{name} and BAO_{name} are both set, and differ"
        assert token not in f"{refused.value!r} {refused.value.remedy}"
    other = {
        "SEALPIPE_STORE__OTHER__PLUGIN": "vault",
        "SEALPIPE_STORE__OTHER__ADDR": bao.addr,
        **openbao,
    }
    found = failed(Registry(environ=other, network=lambda: network), "other:secret/app/db")
    assert "no login for other" in found.message


def test_a_named_store_gets_nothing_that_is_the_default_vaults(
    bao: Bao, registry_of: Registries, tmp_path: Path, front: FrontDoor
) -> None:
    (tmp_path / ".vault-token").write_text(bao.root)
    other = {
        "SEALPIPE_STORE__OTHER__PLUGIN": "vault",
        "SEALPIPE_STORE__OTHER__ADDR": front.base_url,
    }
    found = failed(
        registry_of({"HOME": str(tmp_path), "VAULT_TOKEN": bao.root, **other}),
        "other:secret/app/db",
    )
    assert isinstance(found, NotConfiguredError)
    assert "no login for other" in found.message
    assert front.asked == []


@pytest.mark.parametrize("method", ["approle", "userpass"])
def test_a_login_is_made_once_for_all_references(
    method: str, request: pytest.FixtureRequest, registry_of: Registries, front: FrontDoor
) -> None:
    login = request.getfixturevalue(method)
    registry = registry_of({"VAULT_ADDR": front.base_url, **login})
    refs = ["vault:secret/app/db#password", "vault:secret/app/db#user"]
    assert values(registry, *refs) == ["s3cret", "app"]
    assert [target.startswith("/v1/auth/") for target in front.targets] == [True, False, False]


def test_a_ci_token_logs_in_by_jwt_from_the_environment_or_a_file(
    registry_of: Registries, signed: Signed, tmp_path: Path
) -> None:
    environ = {"VAULT_AUTH_ROLE": "deploy"}
    assert values(registry_of({**environ, f"{P}JWT": signed()}), REF) == ["s3cret"]
    file = tmp_path / "jwt"
    file.write_text(signed() + "\n")
    assert values(registry_of({**environ, f"{P}JWT_FILE": str(file)}), REF) == ["s3cret"]


def test_a_role_alone_means_the_ci_that_is_around_us(registry_of: Registries) -> None:
    found = failed(registry_of({"VAULT_AUTH_ROLE": "deploy"}), "vault:secret/app/db")
    assert isinstance(found, NotConfiguredError)
    assert "CI" in found.message


def test_kubernetes_hands_in_the_token_of_the_service_account(
    registry_of: Registries, front: FrontDoor, tmp_path: Path
) -> None:
    # The method itself needs a cluster to ask: what is sent to it is what counts here.
    file = tmp_path / "service-account"
    file.write_text("a.b.c")
    environ = {f"{P}AUTH": "kubernetes", "VAULT_AUTH_ROLE": "app", f"{P}JWT_FILE": str(file)}
    found = failed(registry_of({"VAULT_ADDR": front.base_url, **environ}), "vault:secret/app/db")
    assert isinstance(found, BackendAuthError)
    assert "auth/kubernetes" in found.remedy
    assert front.targets == ["/v1/auth/kubernetes/login"]


REFUSED: dict[str, Callable[[Signed], str]] = {
    "not for the audience": lambda signed: signed(aud="somebody else"),
    "claims do not match": lambda signed: signed(project="p2"),
    "has expired": lambda signed: signed(iat=1, nbf=1, exp=2),
    "not signed by an issuer": lambda signed: signed(
        by=rsa.generate_private_key(public_exponent=65537, key_size=2048)
    ),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_a_jwt_that_is_refused_says_why(
    registry_of: Registries, signed: Signed, reason: str
) -> None:
    token = REFUSED[reason](signed)
    found = failed(
        registry_of({"VAULT_AUTH_ROLE": "deploy", f"{P}JWT": token}), "vault:secret/app/db"
    )
    assert isinstance(found, BackendAuthError)
    assert reason in found.message
    assert found.remedy


def test_an_unknown_role_is_reported(registry_of: Registries, signed: Signed) -> None:
    found = failed(
        registry_of({"VAULT_AUTH_ROLE": "nobody", f"{P}JWT": signed()}), "vault:secret/app/db"
    )
    assert "the role does not exist" in found.message


def test_a_login_that_is_refused_is_tried_once_for_all_references(
    registry_of: Registries, approle: Login, front: FrontDoor
) -> None:
    registry = registry_of({"VAULT_ADDR": front.base_url, **approle, "VAULT_SECRET_ID": "wrong"})
    with pytest.raises(BackendAuthError, match="do not match") as caught:
        values(registry, *[f"vault:secret/app/{number}#x" for number in range(20)])
    assert len(front.asked) == 1
    assert "wrong" not in str(caught.value)


@pytest.mark.parametrize("size", [64 * 1024 + 1, 1 << 40])
def test_a_token_file_that_is_too_large_is_not_read_whole(
    registry_of: Registries, tmp_path: Path, size: int
) -> None:
    file = tmp_path / "token"
    file.write_text("x")
    os.truncate(file, size)
    found = failed(
        registry_of({"HOME": "/nonexistent", f"{P}TOKEN_FILE": str(file)}), "vault:secret/app/db"
    )
    assert isinstance(found, NotConfiguredError)
    assert found.message == "the token_file of vault cannot be read: it is larger than 65536 bytes"


def test_a_setting_that_is_none_is_an_error(registry_of: Registries) -> None:
    with pytest.raises(SettingError, match="auth"):
        registry_of({f"{P}AUTH": "magic"}).source("vault")
    with pytest.raises(SettingError, match="rol"):
        registry_of({f"{P}ROL": "x"}).source("vault")


def test_a_token_that_we_logged_in_for_is_revoked_at_the_end(
    bao: Bao, registry_of: Registries, approle: Login
) -> None:
    before = sessions(bao)
    registry = registry_of(approle)
    assert values(registry, REF) == ["s3cret"]
    assert len(sessions(bao) - before) == 1
    registry.close()
    assert sessions(bao) - before == set()
    assert values(registry, REF) == ["s3cret"], "a registry that was closed begins anew"


def test_a_token_that_was_given_to_us_is_not(bao: Bao, registry_of: Registries) -> None:
    token = bao.token("app")
    registry = registry_of({"VAULT_TOKEN": token})
    assert values(registry, REF) == ["s3cret"]
    registry.close()
    assert values(registry_of({"VAULT_TOKEN": token}), REF) == ["s3cret"]


def test_a_batch_token_ends_by_itself(bao: Bao, registry_of: Registries, front: FrontDoor) -> None:
    bao.call(
        "POST",
        "auth/approle/role/batch",
        {"token_policies": ["app"], "token_type": "batch", "token_ttl": "5m"},
    )
    role_id = bao.call("GET", "auth/approle/role/batch/role-id")["role_id"]
    secret_id = bao.call("POST", "auth/approle/role/batch/secret-id")["secret_id"]
    environ = {"VAULT_ADDR": front.base_url, "VAULT_ROLE_ID": role_id, "VAULT_SECRET_ID": secret_id}
    registry = registry_of(environ)
    assert values(registry, REF) == ["s3cret"]
    registry.close()
    assert not [target for target in front.targets if "revoke" in target]


def test_health_is_reported_without_lookup_permission(bao: Bao, registry_of: Registries) -> None:
    registry: Registry = registry_of({"VAULT_TOKEN": bao.token("app", no_default_policy=True)})
    assert values(registry, REF) == ["s3cret"]
    assert registry.check("source", "vault").ok
