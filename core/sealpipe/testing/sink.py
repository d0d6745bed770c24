"""What every sink is held to."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import pytest

from sealpipe.errors import Conflict, PluginError
from sealpipe.plugin import Locator, Mode, Receipt, Sink, Stored
from sealpipe.reference import parse
from sealpipe.registry import Registry
from sealpipe.secret import Secret
from sealpipe.testing.canary import CANARY
from sealpipe.testing.contract import Contract, listen, logged, shows, told


class SinkContract(Contract):
    """Subclass it with `name`, `target` and `stored`."""

    kind = "sink"

    modes: ClassVar[tuple[Mode, ...]] = ("create", "replace", "merge")
    """The modes that the backend can keep."""

    @abstractmethod
    def target(self) -> str:
        """What comes after the colon of a reference to a place where nothing is yet; another one at each call."""

    @abstractmethod
    def stored(self, body: str) -> Mapping[str, bytes]:
        """What is there, read by the backend's own means."""

    @pytest.fixture
    def sink(self, registry: Registry) -> Sink:
        """The sink, as the core makes it."""
        return registry.sink(self.name)

    def locator(self, registry: Registry, body: str) -> Locator:
        """The place that a body names."""
        return registry.locate(parse(f"{self.name}:{body}"), "sink")

    def put(self, registry: Registry, body: str, values: Mapping[str, str], mode: Mode, marker: str = "m1") -> Receipt:
        """Store some values."""
        fields = [Stored(key, Secret(value)) for key, value in values.items()]
        return registry.sink(self.name).put(self.locator(registry, body), fields, mode=mode, marker=marker)

    def test_what_is_stored_is_there_exactly(self, registry: Registry) -> None:
        body = self.target()
        values = {"a": " blanks ", "b": "two\nlines\n", "c": CANARY}
        receipt = self.put(registry, body, values, "create")
        assert isinstance(receipt, Receipt)
        assert dict(self.stored(body)) == {key: value.encode() for key, value in values.items()}

    def test_create_never_replaces(self, registry: Registry) -> None:
        body = self.target()
        self.put(registry, body, {"a": "first"}, "create")
        with pytest.raises(Conflict):
            self.put(registry, body, {"a": "second"}, "create", marker="m2")
        assert dict(self.stored(body)) == {"a": b"first"}

    def test_the_same_marker_again_stores_nothing_twice(self, registry: Registry) -> None:
        body = self.target()
        first = self.put(registry, body, {"a": "x"}, "create")
        again = self.put(registry, body, {"a": "x"}, "create")
        if first.known:
            assert again.version == first.version
        assert dict(self.stored(body)) == {"a": b"x"}

    def test_replace_leaves_nothing_else_and_merge_leaves_everything_else(self, registry: Registry) -> None:
        body = self.target()
        self.put(registry, body, {"a": "1", "b": "2"}, "create")
        if "merge" in self.modes:
            self.put(registry, body, {"b": "3"}, "merge", marker="m2")
            assert dict(self.stored(body)) == {"a": b"1", "b": b"3"}
        if "replace" in self.modes:
            self.put(registry, body, {"c": "4"}, "replace", marker="m3")
            assert dict(self.stored(body)) == {"c": b"4"}

    def test_what_it_would_do_is_told_without_doing_it(self, registry: Registry) -> None:
        body = self.target()
        for mode in self.modes:
            assert registry.sink(self.name).describe(self.locator(registry, body), mode)
        with pytest.raises((AssertionError, PluginError, KeyError, OSError)):
            assert self.stored(body)

    def test_a_value_shows_in_no_repr_error_or_log(self, registry: Registry, caplog: pytest.LogCaptureFixture) -> None:
        listen(caplog)
        body = self.target()
        receipt = self.put(registry, body, {"a": CANARY}, "create")
        with pytest.raises(Conflict) as conflict:
            self.put(registry, body, {"a": CANARY + "2"}, "create", marker="m2")
        assert not shows(repr(receipt) + told(conflict.value) + logged(caplog), self.secrets())
