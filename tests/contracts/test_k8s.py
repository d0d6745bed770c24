"""The conformance kit on Kubernetes, as kmock has it."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Mapping, Sequence

import pytest

from sealpipe.testing import SinkContract, SourceContract
from sealpipe.testing.source import Content
from support.failures import OnTheWay
from support.kubernetes import TOKEN, Cluster, cluster, kmock_url, status

__all__ = ["cluster", "kmock_url"]

SETTING = "SEALPIPE_PLUGIN_K8S__"


class _Kmock:
    @pytest.fixture(autouse=True)
    def at_kmock(self, cluster: Cluster) -> None:
        self.cluster, self.numbers = cluster, itertools.count()
        cluster.rule = lambda asked: status(403) if asked.path.endswith("/forbidden") else None

    @pytest.fixture
    def environ(self) -> Mapping[str, str]:
        return {**self.at(self.cluster.base_url), f"{SETTING}TIMEOUT": "20"}

    def at(self, url: str) -> Mapping[str, str]:
        settings = {"SERVER": url, "TOKEN": TOKEN, "TIMEOUT": "0.3"}
        return {f"{SETTING}{name}": value for name, value in settings.items()}

    def secrets(self) -> Sequence[str]:
        return (TOKEN,)


class TestK8s(OnTheWay, _Kmock, SourceContract):
    name = "k8s"
    holds = frozenset({"map"})
    odd_keys = ("dotted.key", "UPPER", "under_score", "-dash")  # all that Kubernetes takes

    def put(self, content: Content) -> str:
        assert isinstance(content, Mapping)
        name = f"secret-{next(self.numbers)}"
        self.cluster.secret("prod", name, content)
        return f"prod/{name}"

    def missing(self) -> str:
        return "prod/not-there"

    def denied(self) -> str:
        return "prod/forbidden"


class TestK8sSink(_Kmock, SinkContract):
    name = "k8s"
    keys = ("tls.key", "UPPER_-", "c")

    @pytest.fixture(autouse=True)
    def with_a_namespace(self, at_kmock: None) -> None:  # noqa: ARG002 - it comes after
        self.cluster.namespaces |= {"prod", "default"}

    def target(self) -> str:
        return f"prod/stored-{next(self.numbers)}"

    def stored(self, body: str) -> Mapping[str, bytes]:
        data = self.cluster.read(*body.split("/"))["data"]
        return {key: base64.b64decode(value) for key, value in data.items()}

    def versions(self, body: str) -> int:
        return int(self.cluster.read(*body.split("/"))["metadata"]["resourceVersion"])

    def rotate(self, body: str, key: str, value: str) -> None:
        space, name = body.split("/")
        self.cluster.change(space, name, {"data": {key: base64.b64encode(value.encode()).decode()}})
