"""A secret of OpenBao's in a recipient's hands, by one command; and what of it all shows anywhere:
nothing.
"""

from __future__ import annotations

import secrets
import time
from pathlib import Path

import jwt as pyjwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

import sealpipe
from plugins.vault.conftest import Registries
from sealpipe_rehearsal.running_service import RunningService
from support.backends import failed
from support.commands import SEALPIPE
from support.fake_web import FrontDoor, Reply
from support.leaks import Detector, exposed
from support.openbao import Bao
from support.strace import watch
from support.terminal import Terminal, opened

P = "SEALPIPE_PLUGIN_VAULT__"
PASSWORD = f"canary-{secrets.token_hex(12)}"
FIELD = "Password=vault:secret/app/e2e#password"


@pytest.fixture
def approle(bao: Bao) -> dict[str, str]:
    bao.call("POST", "auth/approle/role/e2e", {"token_policies": ["app"], "token_ttl": "20m"})
    role_id = bao.call("GET", "auth/approle/role/e2e/role-id")["role_id"]
    secret_id = bao.call("POST", "auth/approle/role/e2e/secret-id")["secret_id"]
    return {"VAULT_ROLE_ID": role_id, "VAULT_SECRET_ID": secret_id}


@pytest.fixture
def jwt(bao: Bao, tmp_path: Path) -> dict[str, str]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    mount = f"ci-{secrets.token_hex(4)}"
    bao.call("POST", f"sys/auth/{mount}", {"type": "jwt"})
    bao.call("POST", f"auth/{mount}/config", {"jwt_validation_pubkeys": [public.decode()]})
    role = {
        "role_type": "jwt",
        "user_claim": "sub",
        "bound_audiences": ["vault"],
        "token_policies": ["app"],
    }
    bao.call("POST", f"auth/{mount}/role/deploy", role)
    now = int(time.time())
    token = pyjwt.encode(
        {"sub": "job", "aud": "vault", "iat": now, "exp": now + 300}, key, algorithm="RS256"
    )
    file = tmp_path / "job.jwt"
    file.write_text(token)
    return {"VAULT_AUTH_ROLE": "deploy", "VAULT_AUTH_PATH": mount, f"{P}JWT_FILE": str(file)}


@pytest.fixture
def userpass(bao: Bao) -> dict[str, str]:
    mount, password = f"people-{secrets.token_hex(4)}", secrets.token_hex(16)
    bao.call("POST", f"sys/auth/{mount}", {"type": "userpass"})
    bao.call("POST", f"auth/{mount}/users/bob", {"password": password, "token_policies": ["app"]})
    return {f"{P}USERNAME": "bob", f"{P}PASSWORD": password, "VAULT_AUTH_PATH": mount}


@pytest.fixture
def token(bao: Bao) -> dict[str, str]:
    return {"VAULT_TOKEN": bao.token("app")}


@pytest.fixture(autouse=True)
def _stored(bao: Bao) -> None:
    bao.call("POST", "secret/data/app/e2e", {"data": {"password": PASSWORD}})


@pytest.mark.parametrize("method", ["token", "approle", "jwt", "userpass"])
def test_one_line_hands_a_secret_over(
    method: str, request: pytest.FixtureRequest, bao: Bao, user: Terminal, service: RunningService
) -> None:
    login: dict[str, str] = request.getfixturevalue(method)
    done = user.sealpipe("share", "-f", FIELD, VAULT_ADDR=bao.addr, **login)
    assert done.code == 0, done
    assert opened(service, done.out) == {"Password": PASSWORD}


def test_a_named_store_of_the_config_file_is_another_vault(
    approle: dict[str, str], bao: Bao, user: Terminal, service: RunningService
) -> None:
    secret_id = user.file("secret-id", approle["VAULT_SECRET_ID"] + "\n")
    config = user.file(
        "config.toml",
        f'[stores.prod-vault]\nplugin = "vault"\naddr = "{bao.addr}"\nrole_id = '
        f'"{approle["VAULT_ROLE_ID"]}"\n'
        f'secret_id_file = "{secret_id}"\n',
    )
    field = "Password=prod-vault:secret/app/e2e#password"
    done = user.sealpipe("share", "-f", field, SEALPIPE_CONFIG=str(config), VAULT_TOKEN="other")
    assert done.code == 0, done
    assert opened(service, done.out) == {"Password": PASSWORD}
    told = user.sealpipe("doctor", "prod-vault", SEALPIPE_CONFIG=str(config))
    assert told.code == 0, told
    assert "policies app, default" in told.out


def test_a_library_call_reads_and_lets_go(
    bao: Bao, approle: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"VAULT_ADDR": bao.addr, **approle}.items():
        monkeypatch.setenv(name, value)
    before = set(bao.call("LIST", "auth/token/accessors")["keys"])
    (field,) = sealpipe.resolve([FIELD])
    assert isinstance(field.value, sealpipe.Secret)
    assert field.value.reveal() == PASSWORD
    assert set(bao.call("LIST", "auth/token/accessors")["keys"]) == before


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *((method, "secret/app/e2e") for method in ("token", "approle", "jwt", "userpass")),
        *(("approle", path) for path in ("secret/other", "nowhere/at/all")),
    ],
)
def test_no_login_and_no_value_shows(
    method: str, path: str, request: pytest.FixtureRequest, user: Terminal, front: FrontDoor
) -> None:
    login: dict[str, str] = request.getfixturevalue(method)
    needles = {"value": PASSWORD.encode(), **secrets_of(login)}
    seen = watch(
        user,
        [*SEALPIPE, "share", "-f", f"Password=vault:{path}#password", "--output", "json"],
        environ={"VAULT_ADDR": front.base_url, **login},
    )
    assert seen.done.code == (0 if path.endswith("e2e") else 14), seen.done
    tokens = {
        asked.headers["x-vault-token"] for asked in front.asked if "x-vault-token" in asked.headers
    }
    assert len(tokens) == 1
    needles |= {"token": token.encode() for token in tokens}  # noqa: B035 - there is one
    detector = Detector(needles)
    to_vault = [
        name
        for name, sent in seen.streams.items()
        if name.startswith("TCP") and b"X-Vault-Request" in sent
    ]
    assert to_vault, "what went to Vault was seen, too"
    places = [(name, data) for name, data in seen.places() if name not in to_vault]
    assert {found for name, data in places for found in detector.find(data, name)} == set()


def secrets_of(login: dict[str, str]) -> dict[str, bytes]:
    closed = {
        name: value
        for name, value in login.items()
        if name.endswith(("TOKEN", "SECRET_ID", "PASSWORD"))
    }
    files = {
        name: Path(value).read_text() for name, value in login.items() if name.endswith("_FILE")
    }
    return {name: value.encode() for name, value in {**closed, **files}.items()}


@pytest.mark.parametrize("status", [200, 307, 400, 403, 404, 500, 503])
def test_an_error_tells_no_login_and_nothing_of_an_answer_in_text_frames_or_log(
    status: int,
    approle: dict[str, str],
    registry_of: Registries,
    front: FrontDoor,
    caplog: pytest.LogCaptureFixture,
) -> None:
    echo = (
        f'{{"errors": ["{approle["VAULT_SECRET_ID"]} {PASSWORD}"], "data": {{"keys": '
        f'"{PASSWORD}"}}}}'
    ).encode()
    front.rule = lambda _: Reply(status, echo)
    caplog.set_level(0)
    found = failed(registry_of({"VAULT_ADDR": front.base_url, **approle}), "vault:secret/app/e2e")
    detector = Detector(
        {"value": PASSWORD.encode(), "secret_id": approle["VAULT_SECRET_ID"].encode()}
    )
    assert detector.find(exposed(found).encode() + caplog.text.encode()) == set()
