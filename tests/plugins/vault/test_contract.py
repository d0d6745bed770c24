"""The vault source and sink, held to their contracts: on both versions of the key-value engine.
hvac reads back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, ClassVar

import hvac
import pytest

from plugins.vault.storing import versions
from sealpipe.testing import SinkContract, SourceContract
from sealpipe.testing.source import Content
from support.failures import OnTheWay
from support.openbao import Bao


class Vault(SourceContract):
    name = "vault"
    holds: ClassVar[frozenset[str]] = frozenset({"map"})
    mount: ClassVar[str]
    numbers = count()

    @pytest.fixture(autouse=True)
    def _in_bao(self, bao: Bao) -> None:
        self.bao = bao
        self.bao.policy("contract", "secret/data/contract/*", "kv1/contract/*")

    @pytest.fixture
    def environ(self, bao: Bao) -> Mapping[str, str]:
        return {"VAULT_ADDR": bao.addr, "VAULT_TOKEN": bao.token("contract")}

    def put(self, content: Content) -> str:
        assert isinstance(content, Mapping)
        return self.written({key: value.decode() for key, value in content.items()})

    def written(self, members: dict[str, Any]) -> str:
        raise NotImplementedError

    def missing(self) -> str:
        return f"{self.mount}/contract/nothing"

    def denied(self) -> str:
        return f"{self.mount}/other/a"


class TestVersionedKeys(OnTheWay, Vault):
    """The way to Vault is the same for both: it is tested here."""

    mount = "secret"

    def at(self, url: str) -> Mapping[str, str]:
        return {"VAULT_ADDR": url, "VAULT_TOKEN": "x", "VAULT_CLIENT_TIMEOUT": "0.3"}

    def written(self, members: dict[str, Any]) -> str:
        path = f"contract/{next(self.numbers)}"
        self.bao.call("POST", f"secret/data/{path}", {"data": members})
        return f"secret/{path}"


class TestKeysWithoutVersions(Vault):
    mount = "kv1"

    def written(self, members: dict[str, Any]) -> str:
        path = f"kv1/contract/{next(self.numbers)}"
        self.bao.call("POST", path, members)
        return path


RIGHTS = """
path "secret/data/contract/*" { capabilities = ["create", "read", "update"] }
path "secret/metadata/contract/*" { capabilities = ["read", "patch"] }
path "kv1/contract/*" { capabilities = ["create", "read", "update"] }
"""


class VaultSink(SinkContract):
    name = "vault"
    mount: ClassVar[str]
    numbers = count()

    @pytest.fixture(autouse=True)
    def _in_bao(self, bao: Bao) -> Iterator[None]:
        self.bao = bao
        bao.call("PUT", "sys/policies/acl/storing", {"policy": RIGHTS})
        self.token = bao.token("storing")
        self.hvac = hvac.Client(url=bao.addr, token=bao.root)
        yield
        self.hvac.adapter.close()

    @pytest.fixture
    def environ(self, bao: Bao, _in_bao: None) -> Mapping[str, str]:
        return {"VAULT_ADDR": bao.addr, "VAULT_TOKEN": self.token}

    def at(self, url: str) -> Mapping[str, str]:
        return {"VAULT_ADDR": url, "VAULT_TOKEN": self.token, "VAULT_CLIENT_TIMEOUT": "0.3"}

    def target(self) -> str:
        return f"{self.mount}/contract/{self.mount}-{next(self.numbers)}"

    def secrets(self) -> Sequence[str]:
        return (self.token,)


class TestStoringVersionedKeys(VaultSink):
    mount = "secret"

    def stored(self, body: str) -> Mapping[str, bytes]:
        path = body.removeprefix("secret/")
        try:
            found = self.hvac.secrets.kv.v2.read_secret_version(path, raise_on_deleted_version=True)
        except hvac.exceptions.InvalidPath:
            return {}
        return {key: value.encode() for key, value in found["data"]["data"].items()}

    def versions(self, body: str) -> int:
        return versions(self.bao, body)

    def rotate(self, body: str, key: str, value: str) -> None:
        after = {name: each.decode() for name, each in self.stored(body).items()} | {key: value}
        self.hvac.secrets.kv.v2.create_or_update_secret(body.removeprefix("secret/"), after)


class TestStoringKeysWithoutVersions(VaultSink):
    mount = "kv1"
    marks = False
    atomic = frozenset()

    def stored(self, body: str) -> Mapping[str, bytes]:
        try:
            found = self.hvac.secrets.kv.v1.read_secret(
                body.removeprefix("kv1/"), mount_point="kv1"
            )
        except hvac.exceptions.InvalidPath:
            return {}
        return {key: value.encode() for key, value in found["data"].items()}
