"""The conformance kit on AWS, as moto has it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest

from plugins.aws.conftest import aws, front, one_moto
from plugins.aws.front import Asked, Front, Refusal
from plugins.aws.moto import ENVIRON, Moto
from plugins.aws.reading import DEFAULT
from sealpipe.testing import SourceContract
from sealpipe.testing.source import Content

__all__ = ["aws", "front", "one_moto"]


class _OnMoto(SourceContract):
    @pytest.fixture(autouse=True)
    def at_moto(self, aws: Moto, front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in ENVIRON.items():
            monkeypatch.setenv(name, value)
        self.aws, self.front, self.numbers = aws, front, itertools.count()
        front.answer = self._denied

    @pytest.fixture
    def environ(self) -> Mapping[str, str]:
        return {**ENVIRON, f"{DEFAULT}ENDPOINT_URL": self.front.url}

    def at(self, url: str) -> Mapping[str, str]:
        return {**ENVIRON, f"{DEFAULT}ENDPOINT_URL": url, f"{DEFAULT}TIMEOUT": "2"}

    @staticmethod
    def _denied(asked: Asked) -> Refusal | None:
        return Refusal(400, "AccessDeniedException") if "forbidden" in asked.body else None

    def missing(self) -> str:
        return "/not/there"

    def denied(self) -> str:
        return "/forbidden"


class TestAwsSm(_OnMoto):
    name = "aws-sm"
    holds = frozenset({"text", "binary"})

    def put(self, content: Content) -> str:
        assert isinstance(content, bytes)
        name = f"app/{next(self.numbers)}"
        try:
            value = {"SecretString": content.decode()}
        except UnicodeDecodeError:
            value = {"SecretBinary": content}  # type: ignore[dict-item]
        self.aws.client("secretsmanager").create_secret(Name=name, **value)
        return name


class TestAwsSsm(_OnMoto):
    name = "aws-ssm"
    holds = frozenset({"text"})
    largest = 8 * 1024

    def put(self, content: Content) -> str:
        assert isinstance(content, bytes)
        name = f"/app/{next(self.numbers)}"
        tier = "Advanced" if len(content) > 4096 else "Standard"
        self.aws.client("ssm").put_parameter(Name=name, Value=content.decode(), Type="SecureString", Tier=tier)
        return name
