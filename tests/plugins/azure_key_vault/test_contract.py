"""The conformance kit on Azure Key Vault, as the fake has it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence

import pytest

from plugins.azure_key_vault.conftest import DEFAULT
from plugins.azure_key_vault.fake_key_vault import FORBIDDEN, SECRET, TOKEN, FakeKeyVault
from sealpipe.testing import SinkContract, SourceContract
from sealpipe.testing.source import Content
from support.failures import OnTheWay


class _OnFake:
    name = "azure-kv"

    @pytest.fixture(autouse=True)
    def at_azure(self, azure: FakeKeyVault, environ: Mapping[str, str]) -> None:
        self.azure, self.settings, self.numbers = azure, environ, itertools.count()

    @pytest.fixture
    def environ(self, request: pytest.FixtureRequest) -> Mapping[str, str]:
        found: Mapping[str, str] = request.getfixturevalue("environ")
        return found

    def at(self, url: str) -> Mapping[str, str]:
        return {**self.settings, f"{DEFAULT}URL": url, f"{DEFAULT}TIMEOUT": "0.3"}

    def secrets(self) -> Sequence[str]:
        return (TOKEN, SECRET)


class TestAzureKv(OnTheWay, _OnFake, SourceContract):
    holds = frozenset({"text"})
    largest = 25600

    def put(self, content: Content) -> str:
        assert isinstance(content, bytes)
        name = f"app-{next(self.numbers)}"
        self.azure.hold(name, "an older one", content.decode())
        return name

    def missing(self) -> str:
        return "nothing"

    def denied(self) -> str:
        return FORBIDDEN


class TestAzureKvSink(_OnFake, SinkContract):
    atomic = frozenset()

    def versions(self, body: str) -> int:
        return len(self.azure.secrets[body].versions)

    def target(self) -> str:
        return f"app-{next(self.numbers)}"

    def stored(self, body: str) -> Mapping[str, bytes]:
        return {key: value.encode() for key, value in json.loads(self.azure.newest(body)).items()}

    def rotate(self, body: str, key: str, value: str) -> None:
        there = {name: data.decode() for name, data in self.stored(body).items()} | {key: value}
        self.azure.add(body, json.dumps(there), tags=self.azure.tags(body))


class TestAzureKvSinkWhole(_OnFake, SinkContract):
    """Its calls are those of keys, which the other class loses, refuses and holds."""

    keys = ("", "", "")
    single = True
    at = SinkContract.at
    atomic = frozenset()

    def target(self) -> str:
        return f"whole-{next(self.numbers)}"

    def stored(self, body: str) -> Mapping[str, bytes]:
        return {"": self.azure.newest(body).encode()}

    def rotate(self, body: str, key: str, value: str) -> None:  # noqa: ARG002 - it is one value
        self.azure.add(body, value, tags=self.azure.tags(body))
