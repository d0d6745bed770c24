"""The contract of sinks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import pytest

from sealpipe.errors import PluginError, WriteConflictError
from sealpipe.plugin import BLIND, Locator, Mode, Secret, Sink, SinkField, WriteResult
from sealpipe.reference import parse
from sealpipe.registry import Registry
from sealpipe.testing.contract import (
    CANARY,
    Contract,
    error_text,
    find_leaks,
    log_everything,
    log_text,
)

HARD: tuple[str, ...] = (
    " blanks ",
    "two\nlines\n",
    "'single' \"double\" `back` $HOME ${HOME} $(id) \\n \\ # =",
    "ünï©ode ✓ \u202e",
    "::add-mask::x\n<<EOF\nEOF\n",
    "\t\x1b[31mred\x07",
    "x" * 20_000,
)
"""Values that must be stored exactly, or refused before anything is stored."""


class SinkContract(Contract):
    """Subclass it with `name`, `target`, `stored`, and `rotate` if the backend keeps the marker."""

    kind = "sink"

    modes: ClassVar[tuple[Mode, ...]] = ("create", "replace", "merge")
    """The modes that the backend supports."""
    keys: ClassVar[tuple[str, str, str]] = ("a", "b", "c")
    """Three keys, spelled as in the backend."""
    single: ClassVar[bool] = False
    """Whether a target holds one value. `stored` returns it under the first of `keys`."""
    apart: ClassVar[bool] = False
    """Whether every key is an entry of its own: replacing one keeps the others."""
    marks: ClassVar[bool] = True
    """Whether the backend keeps the marker beside the value."""
    hard: ClassVar[tuple[str, ...]] = HARD
    canary: ClassVar[str] = CANARY
    """A value that nothing may show. Override it if the backend refuses such characters."""

    @abstractmethod
    def target(self) -> str:
        """Return a body that refers to a target that does not exist yet, another at each call."""

    @abstractmethod
    def stored(self, body: str) -> Mapping[str, bytes]:
        """Return what is stored there, read with the backend's own tools.

        If nothing is, return nothing or raise.
        """

    def rotate(self, body: str, key: str, value: str) -> None:
        """Change a key's value with the backend's own tools, as people rotate a secret."""
        raise NotImplementedError

    @pytest.fixture
    def sink(self, registry: Registry) -> Sink:
        """The sink, as the core makes it."""
        return registry.sink(self.name)

    def locator(self, registry: Registry, body: str) -> Locator:
        """Return the locator of a reference's body."""
        return registry.locate(parse(f"{self.name}:{body}"), "sink")

    def put(
        self,
        registry: Registry,
        body: str,
        values: Mapping[str, str],
        mode: Mode,
        marker: str = "m1",
    ) -> WriteResult:
        """Store values by key."""
        fields = [SinkField(key, Secret(value)) for key, value in values.items()]
        return registry.sink(self.name).put(
            self.locator(registry, body), fields, mode=mode, marker=marker
        )

    def values(self, *values: str) -> dict[str, str]:
        """Values under the backend's keys; only the first if a target holds one value."""
        return dict(zip(self.keys[:1] if self.single else self.keys, values, strict=False))

    def test_what_is_stored_is_there_exactly(self, registry: Registry) -> None:
        body = self.target()
        values = self.values(self.canary + "1", self.canary + "2", self.canary)
        receipt = self.put(registry, body, values, "create")
        assert isinstance(receipt, WriteResult)
        assert not receipt.already
        assert dict(self.stored(body)) == _bytes(values)

    def test_a_hard_value_is_stored_exactly_or_refused_with_nothing_stored(
        self, registry: Registry
    ) -> None:
        for value in self.hard:
            body, values = self.target(), self.values(value)
            refused: PluginError | None = None
            try:
                self.put(registry, body, values, "create")
            except PluginError as error:
                refused = error
            if refused is None:
                assert dict(self.stored(body)) == _bytes(values)
            else:
                assert refused.remedy, "a refusal says what to do next"
                assert not self._read_target(body)

    def test_create_never_replaces(self, registry: Registry) -> None:
        body = self.target()
        self.put(registry, body, self.values("first-value"), "create")
        with pytest.raises(WriteConflictError):
            self.put(registry, body, self.values("second-value"), "create", marker="m2")
        assert dict(self.stored(body)) == _bytes(self.values("first-value"))

    def test_the_same_marker_again_stores_nothing_twice(self, registry: Registry) -> None:
        body, values = self.target(), self.values("some-value")
        first = self.put(registry, body, values, "create")
        if self._is_write_only(registry):
            with pytest.raises(WriteConflictError):
                self.put(registry, body, values, "create")
        else:
            repeated = self.put(registry, body, values, "create")
            assert repeated.already
            assert repeated.version == first.version
        assert dict(self.stored(body)) == _bytes(values)

    def test_what_is_there_already_is_not_written_again(self, registry: Registry) -> None:
        if self._is_write_only(registry):
            pytest.skip("nobody can see what is there")
        body, values = self.target(), self.values("some-value")
        first = self.put(registry, body, values, "create")
        for mode in self.modes:
            repeated = self.put(registry, body, values, mode, marker=f"m-{mode}")
            assert repeated.already
            assert repeated.version == first.version

    def test_what_was_rotated_since_is_left_alone(self, registry: Registry) -> None:
        if not self.marks:
            pytest.skip("the backend has no place for a marker")
        for mode in self.modes:
            body = self.target()
            self.put(registry, body, self.values("first-value"), mode)
            self.rotate(body, self.keys[0], "rotated-value")
            assert self.put(registry, body, self.values("first-value"), mode).already
            assert dict(self.stored(body)) == _bytes(self.values("rotated-value"))

    def test_a_key_that_the_marked_place_lacks_is_added(self, registry: Registry) -> None:
        if self.single or "merge" not in self.modes:
            pytest.skip("a target holds one value")
        body = self.target()
        first, second, _ = self.keys
        self.put(registry, body, {first: "first-value"}, "merge")
        self.put(registry, body, {first: "first-value", second: "second-value"}, "merge")
        assert dict(self.stored(body)) == {first: b"first-value", second: b"second-value"}

    def test_replace_leaves_nothing_else_and_merge_leaves_everything_else(
        self, registry: Registry
    ) -> None:
        body = self.target()
        first, second, third = self.keys
        if self.single:
            self.put(registry, body, {first: "first-value"}, "create")
            self.put(registry, body, {first: "other-value"}, "replace", marker="m2")
            assert dict(self.stored(body)) == {first: b"other-value"}
            return
        self.put(registry, body, {first: "first-value", second: "second-value"}, "create")
        after = {first: b"first-value", second: b"second-value"}
        if "merge" in self.modes:
            self.put(registry, body, {second: "third-value"}, "merge", marker="m2")
            after[second] = b"third-value"
            assert dict(self.stored(body)) == after
        if "replace" in self.modes:
            self.put(registry, body, {third: "fourth-value"}, "replace", marker="m3")
            assert dict(self.stored(body)) == (
                {**after, third: b"fourth-value"} if self.apart else {third: b"fourth-value"}
            )

    def test_what_it_would_do_is_told_without_doing_it(self, registry: Registry) -> None:
        body = self.target()
        for mode in self.modes:
            assert registry.sink(self.name).describe(self.locator(registry, body), mode)
        assert not self._read_target(body)

    def test_a_value_shows_in_no_repr_error_or_log(
        self, registry: Registry, caplog: pytest.LogCaptureFixture
    ) -> None:
        log_everything(caplog)
        body = self.target()
        receipt = self.put(registry, body, self.values(self.canary), "create")
        with pytest.raises(WriteConflictError) as conflict:
            self.put(registry, body, self.values(self.canary + "2"), "create", marker="m2")
        assert not find_leaks(
            repr(receipt) + error_text(conflict.value) + log_text(caplog),
            [self.canary, *self.secrets()],
        )

    def _read_target(self, body: str) -> Mapping[str, bytes]:
        try:
            return self.stored(body)
        except (AssertionError, PluginError, LookupError, OSError):
            return {}

    def _is_write_only(self, registry: Registry) -> bool:
        return BLIND in registry.sink_info(self.name).capabilities


def _bytes(values: Mapping[str, str]) -> dict[str, bytes]:
    return {key: value.encode() for key, value in values.items()}
