"""The contract of sinks on one that stores over HTTP and is right, and on the same wrong in one
way.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from sealpipe.registry.catalog import BUILT_IN
from sealpipe.testing import SinkContract
from support.locker import FAULTS, FakeLocker, Locker

DRAWN = {"mode": "merge", "how": "307"}
"""What the tests of the contract are called with, of what they draw."""


class TestLocker(SinkContract):
    name = "locker"
    built_in = (*BUILT_IN, "support.locker_plugin")

    @pytest.fixture
    def environ(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mapping[str, str]]:
        monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[1]))
        with FakeLocker() as self.fake:
            self.numbers = itertools.count()
            yield self.at(self.fake.base_url)

    def at(self, url: str) -> Mapping[str, str]:
        return {"LOCKER": url}

    def target(self) -> str:
        return f"box-{next(self.numbers)}"

    def stored(self, body: str) -> Mapping[str, bytes]:
        return {key: value.encode() for key, value in self.fake.boxes[body]["values"].items()}

    def versions(self, body: str) -> int:
        return int(self.fake.boxes[body]["version"])

    def rotate(self, body: str, key: str, value: str) -> None:
        self.fake.boxes[body]["values"][key] = value

    @pytest.mark.parametrize("wrong", FAULTS)
    def test_the_contract_notices(
        self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, wrong: str
    ) -> None:
        test = getattr(self, FAULTS[wrong])
        names = inspect.signature(test).parameters.keys()
        drawn = {name: each for name, each in DRAWN.items() if name in names}
        given = drawn | {name: request.getfixturevalue(name) for name in names - drawn.keys()}
        test(**given)
        monkeypatch.setattr(Locker, "wrong", wrong)
        self._rehearsed = {}  # it may make other requests
        with pytest.raises(AssertionError):
            test(**given)
