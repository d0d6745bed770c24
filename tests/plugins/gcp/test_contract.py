"""The conformance kit on Google Secret Manager, as the fake has it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence

import pytest

from plugins.gcp.conftest import DEFAULT
from plugins.gcp.fake_secret_manager import (
    FORBIDDEN,
    PROJECT,
    REFRESH_TOKEN,
    TOKEN,
    FakeSecretManager,
)
from sealpipe.testing import SinkContract, SourceContract
from sealpipe.testing.source import Content
from support.backends import Unconditional
from support.failures import OnTheWay


class _OnFake:
    name = "gcp-sm"

    @pytest.fixture(autouse=True)
    def at_google(self, google: FakeSecretManager, environ: Mapping[str, str]) -> None:
        self.google, self.settings, self.numbers = google, environ, itertools.count()
        google.hold(FORBIDDEN, b"x")

    @pytest.fixture
    def environ(self, request: pytest.FixtureRequest) -> Mapping[str, str]:
        found: Mapping[str, str] = request.getfixturevalue("environ")
        return found

    def at(self, url: str) -> Mapping[str, str]:
        return {**self.settings, f"{DEFAULT}URL": url, f"{DEFAULT}TIMEOUT": "0.3"}

    def secrets(self) -> Sequence[str]:
        return (TOKEN, REFRESH_TOKEN, "Canary-client")


class TestGcpSm(OnTheWay, _OnFake, SourceContract):
    holds = frozenset({"text", "binary"})

    def put(self, content: Content) -> str:
        assert isinstance(content, bytes)
        name = f"app-{next(self.numbers)}"
        self.google.hold(name, b"an older one", content)
        return f"{PROJECT}/{name}"

    def missing(self) -> str:
        return f"{PROJECT}/nothing"

    def denied(self) -> str:
        return f"projects/{PROJECT}/secrets/{FORBIDDEN}"


class TestGcpSmSink(_OnFake, Unconditional):
    def writes(self, body: str) -> int:
        return len(self.google.secrets[body].versions)

    def target(self) -> str:
        return f"app-{next(self.numbers)}"

    def stored(self, body: str) -> Mapping[str, bytes]:
        return {key: value.encode() for key, value in json.loads(self.google.newest(body)).items()}

    def rotate(self, body: str, key: str, value: str) -> None:
        there = {name: data.decode() for name, data in self.stored(body).items()} | {key: value}
        self.google.add(body, json.dumps(there).encode())


class TestGcpSmSinkWhole(_OnFake, SinkContract):
    """Its calls are those of keys, which the other class loses, refuses and holds."""

    keys = ("", "", "")
    single = True
    at = SinkContract.at

    def target(self) -> str:
        return f"whole-{next(self.numbers)}"

    def stored(self, body: str) -> Mapping[str, bytes]:
        return {"": self.google.newest(body)}

    def rotate(self, body: str, key: str, value: str) -> None:  # noqa: ARG002 - it is one value
        self.google.add(body, value.encode())
