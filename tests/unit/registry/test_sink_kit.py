"""The conformance kit for sinks, on one that is right, and on the same being wrong in one way."""

from __future__ import annotations

import inspect
import itertools
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from sealpipe.errors import WriteConflictError
from sealpipe.registry import Registry
from sealpipe.registry.catalog import BUILT_IN
from sealpipe.testing import SinkContract
from support.drawer import FAULTS, Drawer


class TestDrawer(SinkContract):
    name = "drawer"
    built_in = (*BUILT_IN, "support.drawer")

    @pytest.fixture
    def environ(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
        monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
        self.folder, self.numbers = tmp_path, itertools.count()
        return {"DRAWER": str(tmp_path)}

    def target(self) -> str:
        return f"place-{next(self.numbers)}"

    def stored(self, body: str) -> Mapping[str, bytes]:
        values: dict[str, str] = json.loads((self.folder / f"{body}.json").read_text())["values"]
        return {key: value.encode() for key, value in values.items()}

    def rotate(self, body: str, key: str, value: str) -> None:
        file = self.folder / f"{body}.json"
        there = json.loads(file.read_text())
        there["values"][key] = value
        file.write_text(json.dumps(there))

    @pytest.mark.parametrize("wrong", FAULTS)
    def test_the_kit_notices(
        self,
        registry: Registry,
        caplog: pytest.LogCaptureFixture,
        monkeypatch: pytest.MonkeyPatch,
        wrong: str,
    ) -> None:
        monkeypatch.setattr(Drawer, "wrong", wrong)
        test = getattr(self, FAULTS[wrong])
        given = {"registry": registry, "caplog": caplog}
        with pytest.raises((AssertionError, pytest.fail.Exception, WriteConflictError)):
            test(**{name: given[name] for name in inspect.signature(test).parameters})


def test_a_class_has_the_tests_that_apply_to_it() -> None:
    class Far(TestDrawer):
        def at(self, url: str) -> Mapping[str, str]:
            return {"DRAWER": url}

    class Near(Far):
        at = SinkContract.at
        marks = False

    def has(kind: type[SinkContract], test: str) -> bool:
        return getattr(kind, test) is not None

    kinds = (TestDrawer, Far, Near)
    refused = "test_a_refused_write_is_an_error_that_quotes_nothing"
    assert [has(kind, refused) for kind in kinds] == [False, True, False]
    rotated = "test_what_was_rotated_since_is_left_alone"
    assert [has(kind, rotated) for kind in kinds] == [True, True, False]
