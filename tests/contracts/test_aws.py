"""The conformance kit on AWS, as moto has it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from botocore.exceptions import ClientError

from sealpipe.plugin import Mode
from sealpipe.registry import Registry
from sealpipe.testing import SinkContract, SourceContract
from sealpipe.testing.source import Content
from support.aws import DEFAULT, ENVIRON, Call, Front, Moto, Refusal, aws, front, one_moto
from support.failures import OnTheWay

__all__ = ["aws", "front", "one_moto"]


class _Moto:
    @pytest.fixture(autouse=True)
    def at_moto(self, aws: Moto, front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in ENVIRON.items():
            monkeypatch.setenv(name, value)
        self.aws, self.front, self.numbers = aws, front, itertools.count()


class _OnMoto(_Moto, SourceContract):
    @pytest.fixture
    def environ(self) -> Mapping[str, str]:
        return {**ENVIRON, f"{DEFAULT}ENDPOINT_URL": self.front.base_url}

    @pytest.fixture(autouse=True)
    def with_what_is_forbidden(self, at_moto: None) -> None:  # noqa: ARG002 - it comes after
        self.front.rule = self._denied

    @staticmethod
    def _denied(asked: Call) -> Refusal | None:
        return Refusal(400, "AccessDeniedException") if b"forbidden" in asked.body else None

    def missing(self) -> str:
        return "/not/there"

    def denied(self) -> str:
        return "/forbidden"


class TestAwsSm(OnTheWay, _OnMoto):
    """The way to AWS is the same for both sources: it is tested here."""

    name = "aws-sm"
    holds = frozenset({"text", "binary"})

    def at(self, url: str) -> Mapping[str, str]:
        return {**ENVIRON, f"{DEFAULT}ENDPOINT_URL": url, f"{DEFAULT}TIMEOUT": "0.3"}

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
        self.aws.client("ssm").put_parameter(
            Name=name, Value=content.decode(), Type="SecureString", Tier=tier
        )
        return name


class _Storing(_Moto, SinkContract):
    @pytest.fixture
    def environ(self) -> Mapping[str, str]:
        return {**ENVIRON, f"{DEFAULT}ENDPOINT_URL": self.aws.url}

    def at(self, url: str) -> Mapping[str, str]:
        return {**ENVIRON, f"{DEFAULT}ENDPOINT_URL": url, f"{DEFAULT}TIMEOUT": "0.3"}

    def had(self, service: str, operation: str, **asked: object) -> Any:
        """What moto has; LookupError where it has nothing."""
        try:
            return getattr(self.aws.client(service), operation)(**asked)
        except ClientError as error:
            raise LookupError(error.response["Error"]["Code"]) from None

    def secrets(self) -> Sequence[str]:
        return (ENVIRON["AWS_SECRET_ACCESS_KEY"],)


class _InSecretsManager(_Storing):
    name = "aws-sm"

    def versions(self, body: str) -> int:
        found = self.had(
            "secretsmanager", "list_secret_version_ids", SecretId=body, IncludeDeprecated=True
        )
        return len(found["Versions"])


class TestAwsSmSink(_InSecretsManager):
    def target(self) -> str:
        return f"app/{next(self.numbers)}"

    def stored(self, body: str) -> Mapping[str, bytes]:
        found = self.had("secretsmanager", "get_secret_value", SecretId=body)
        return {key: value.encode() for key, value in json.loads(found["SecretString"]).items()}

    def rotate(self, body: str, key: str, value: str) -> None:
        there = {name: data.decode() for name, data in self.stored(body).items()} | {key: value}
        self.aws.client("secretsmanager").put_secret_value(
            SecretId=body, SecretString=json.dumps(there)
        )


class TestAwsSmSinkWithoutAValue(TestAwsSmSink):
    """Every secret was made without a value, which AWS allows. With a value, it is as any other."""

    modes = ("create",)

    def target(self) -> str:
        name = super().target()
        self.aws.client("secretsmanager").create_secret(Name=name)
        return name

    @pytest.mark.parametrize("mode", ["replace", "merge"])
    def test_the_other_modes_store_there_too(self, registry: Registry, mode: Mode) -> None:
        body, values = self.target(), self.values("one", "two")
        assert not self.put(registry, body, values, mode).already
        assert dict(self.stored(body)) == {key: each.encode() for key, each in values.items()}


class TestAwsSmSinkWhole(_InSecretsManager):
    keys = ("", "", "")
    single = True
    at = SinkContract.at  # its calls are those of keys

    def target(self) -> str:
        return f"whole/{next(self.numbers)}"

    def stored(self, body: str) -> Mapping[str, bytes]:
        found = self.had("secretsmanager", "get_secret_value", SecretId=body)
        return {"": found.get("SecretBinary") or found["SecretString"].encode()}

    def rotate(self, body: str, key: str, value: str) -> None:  # noqa: ARG002 - it is one value
        self.aws.client("secretsmanager").put_secret_value(SecretId=body, SecretString=value)


class TestAwsSsmSink(_Storing):
    name = "aws-ssm"
    single = True
    atomic = frozenset({"create"})

    def target(self) -> str:
        return f"/app/{next(self.numbers)}"

    def stored(self, body: str) -> Mapping[str, bytes]:
        found = self.had("ssm", "get_parameter", Name=body, WithDecryption=True)["Parameter"]
        assert found["Type"] == "SecureString"
        return {self.keys[0]: found["Value"].encode()}

    def versions(self, body: str) -> int:
        return int(self.had("ssm", "get_parameter", Name=body)["Parameter"]["Version"])

    def rotate(self, body: str, key: str, value: str) -> None:  # noqa: ARG002 - it is one value
        self.aws.client("ssm").put_parameter(
            Name=body, Value=value, Type="SecureString", Overwrite=True
        )


class TestAwsSsmSinkPath(_Storing):
    name = "aws-ssm"
    apart = True
    atomic = frozenset({"create", "merge"})
    keys = ("db/password", "user", "-._")

    def target(self) -> str:
        return f"/app/{next(self.numbers)}/"

    def stored(self, body: str) -> Mapping[str, bytes]:
        page = self.aws.client("ssm").get_parameters_by_path(
            Path=body, Recursive=True, WithDecryption=True
        )
        assert {found["Type"] for found in page["Parameters"]} <= {"SecureString"}
        return {
            found["Name"].removeprefix(body): found["Value"].encode()
            for found in page["Parameters"]
        }

    def versions(self, body: str) -> int:
        page = self.aws.client("ssm").get_parameters_by_path(Path=body, Recursive=True)
        return sum(found["Version"] for found in page["Parameters"])

    def rotate(self, body: str, key: str, value: str) -> None:
        self.aws.client("ssm").put_parameter(
            Name=body + key, Value=value, Type="SecureString", Overwrite=True
        )
