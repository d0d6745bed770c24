"""The contracts of source and sink, for Doppler."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import pytest

from plugins.doppler.fake_doppler import ACCOUNT, FakeDoppler
from sealpipe.testing import SinkContract, SourceContract
from sealpipe.testing.source import Content
from support.failures import OnTheWay


class Kit:
    """What source and sink have in common."""

    name = "doppler"

    @pytest.fixture(autouse=True)
    def doppler(self) -> Iterator[None]:
        with FakeDoppler() as self.fake:
            self.numbers = itertools.count()
            yield

    @pytest.fixture
    def environ(self) -> Mapping[str, str]:
        return self.at(self.fake.base_url)

    def at(self, url: str) -> Mapping[str, str]:
        return {"DOPPLER_API_HOST": url, "DOPPLER_TOKEN": ACCOUNT}

    def secrets(self) -> Sequence[str]:
        return (ACCOUNT,)

    def target(self) -> str:
        config = f"dev_{next(self.numbers)}"
        self.fake.config("app", config)
        return f"app/{config}"


class TestDopplerSource(OnTheWay, Kit, SourceContract):
    holds = frozenset({"map"})
    odd_keys: ClassVar[tuple[str, ...]] = ("DB_PASSWORD", "_A", "A1")

    def put(self, content: Content) -> str:
        assert isinstance(content, Mapping)
        body = self.target()
        self.fake.config("app", body[4:], **{key: value.decode() for key, value in content.items()})
        return body

    def missing(self) -> str:
        return "app/nothing"

    def denied(self) -> str:
        self.fake.config("hidden", "dev")
        return "hidden/dev"


class TestDopplerSink(Kit, SinkContract):
    apart = True
    atomic = frozenset({"replace", "merge"})
    keys: ClassVar[tuple[str, str, str]] = ("A_KEY", "B_KEY", "C_KEY")

    def stored(self, body: str) -> Mapping[str, bytes]:
        return {
            name: each.raw.encode() for name, each in self.fake.configs["app", body[4:]].items()
        }

    def rotate(self, body: str, key: str, value: str) -> None:
        self.fake.configs["app", body[4:]][key].raw = value
