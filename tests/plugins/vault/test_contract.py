"""The vault source, held to what every source is held to: on both versions of the key-value engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, ClassVar

import pytest

from sealpipe.registry import Registry
from sealpipe.testing import SourceContract
from sealpipe.testing.source import Content
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

    @pytest.fixture
    def registry(self, environ: Mapping[str, str]) -> Iterator[Registry]:
        made = self.registry_in(environ)
        yield made
        made.close()

    def put(self, content: Content) -> str:
        assert isinstance(content, Mapping)
        return self.written({key: value.decode() for key, value in content.items()})

    def written(self, members: dict[str, Any]) -> str:
        raise NotImplementedError

    def missing(self) -> str:
        return f"{self.mount}/contract/nothing"

    def denied(self) -> str:
        return f"{self.mount}/other/a"

    def at(self, url: str) -> Mapping[str, str]:
        return {"VAULT_ADDR": url, "VAULT_TOKEN": "x", "VAULT_CLIENT_TIMEOUT": "2"}


class TestVersionedKeys(Vault):
    mount = "secret"

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
