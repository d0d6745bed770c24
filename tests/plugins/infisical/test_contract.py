"""The contracts of source and sink, for Infisical."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import pytest

from plugins.infisical.fake_infisical import PROJECT, TOKEN, FakeInfisical
from sealpipe.testing import SourceContract
from sealpipe.testing.source import Content
from support.backends import Unconditional
from support.failures import OnTheWay


class Kit:
    """What source and sink have in common."""

    name = "infisical"

    @pytest.fixture(autouse=True)
    def infisical(self) -> Iterator[None]:
        with FakeInfisical() as self.fake:
            self.numbers = itertools.count()
            yield

    @pytest.fixture
    def environ(self) -> Mapping[str, str]:
        return self.at(self.fake.base_url)

    def at(self, url: str) -> Mapping[str, str]:
        return {"INFISICAL_API_URL": url, "INFISICAL_TOKEN": TOKEN}

    def secrets(self) -> Sequence[str]:
        return (TOKEN,)

    def target(self) -> str:
        folder = f"/folder-{next(self.numbers)}"
        self.fake.folder("dev", folder)
        return f"{PROJECT}/dev{folder}"

    def folder(self, body: str) -> tuple[str, str]:
        return "dev", body.removeprefix(f"{PROJECT}/dev")


class TestInfisicalSource(OnTheWay, Kit, SourceContract):
    holds = frozenset({"map"})
    odd_keys: ClassVar[tuple[str, ...]] = ("dotted.key", "dash-key", "UPPER", "eq=al", "with space")

    def put(self, content: Content) -> str:
        assert isinstance(content, Mapping)
        body = self.target()
        self.fake.folder(
            *self.folder(body), **{key: value.decode() for key, value in content.items()}
        )
        return body

    def missing(self) -> str:
        return f"{PROJECT}/dev/nothing"

    def denied(self) -> str:
        self.fake.denied.add(("prod", "/"))
        return f"{PROJECT}/prod"


class TestInfisicalSink(Kit, Unconditional):
    apart = True
    keys: ClassVar[tuple[str, str, str]] = ("A_KEY", "b.key", "c-key")

    def writes(self, body: str) -> int:
        return sum(each.version for each in self.fake.folders[self.folder(body)].values())

    def stored(self, body: str) -> Mapping[str, bytes]:
        return {
            name: each.value.encode() for name, each in self.fake.folders[self.folder(body)].items()
        }

    def rotate(self, body: str, key: str, value: str) -> None:
        self.fake.folders[self.folder(body)][key].value = value
