"""Plugins for copies: stores of every kind, in memory, that fail when and how a test says.

`marked` keeps a marker beside the values, in the same write; `late` in a second one; `apart` writes
one key after the other, each with its marker; `plain` keeps none; `proven` is read by nobody, but
knows whether a value is its own; `blind` not even that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

from sealpipe.plugin import (
    BLIND,
    FRESH,
    AccessDeniedError,
    Document,
    Locator,
    Mode,
    SecretNotFoundError,
    Sink,
    SinkField,
    SinkInfo,
    Source,
    SourceInfo,
    UnavailableError,
    UnknownOutcomeError,
    WriteConflictError,
    WriteResult,
    hookimpl,
    merge_fields,
)

KINDS = ("marked", "late", "plain", "proven", "blind")
READABLE = ("marked", "late", "plain")
"""`apart` is tested by itself: it differs only where it has several keys."""


class KilledError(BaseException):
    """The process is dead."""


class Failure(NamedTuple):
    """What goes wrong at a store's write, once."""

    store: str
    how: str


class World:
    """What the stores hold, and what goes wrong next."""

    values: ClassVar[dict[str, dict[str, bytes]]] = {}
    markers: ClassVar[dict[str, list[str]]] = {}
    history: ClassVar[list[tuple[str, bytes]]] = []
    writes: ClassVar[list[str]] = []
    drawn: ClassVar[int] = 0
    failures: ClassVar[list[Failure]] = []
    given: ClassVar[str] = "given-1"

    @classmethod
    def begin(cls) -> None:
        """Empty all stores."""
        for each in (cls.values, cls.markers):
            each.clear()
        cls.history.clear()
        cls.writes.clear()
        cls.failures.clear()
        cls.drawn, cls.given = 0, "given-1"

    @classmethod
    def fails(cls, store: str, *ways: str) -> str:
        """Return how a store fails now, if it is one of these ways; that is over then."""
        for each in cls.failures:
            if each.store == store and each.how in ways:
                cls.failures.remove(each)
                return each.how
        return ""


@hookimpl
def sealpipe_sources(register: Callable[[SourceInfo], None]) -> None:
    register(SourceInfo("drawn", "another value each time", _name(Drawn), capabilities=(FRESH,)))
    register(SourceInfo("given", "a value that stays", _name(Given)))
    for kind in (*READABLE, "apart"):
        register(SourceInfo(kind, "a store", _name(Store)))


@hookimpl
def sealpipe_sinks(register: Callable[[SinkInfo], None]) -> None:
    for kind in KINDS:
        capabilities = (BLIND,) if kind == "blind" else ()
        register(SinkInfo(kind, "a store", _name(Shelf), capabilities=capabilities))
    register(SinkInfo("apart", "a store", _name(Drawers)))


def _name(kind: type[Any]) -> str:
    return f"{__name__}:{kind.__name__}"


class Drawn(Source):
    def fetch(self, locator: Locator) -> Document:
        del locator
        World.drawn += 1
        return Document(f"drawn-{World.drawn}")


class Given(Source):
    def fetch(self, locator: Locator) -> Document:
        del locator
        return Document(World.given)


class Store(Source):
    def fetch(self, locator: Locator) -> Document:
        values = World.values.get(f"{locator.name}:{locator.body}")
        if values is None:
            raise SecretNotFoundError(f"{locator} is not there")
        return Document(values)


class Shelf(Sink):
    def describe(self, locator: Locator, mode: Mode) -> str:
        return f"{mode} {locator.body}"

    def put(
        self, locator: Locator, fields: Sequence[SinkField], *, mode: Mode, marker: str
    ) -> WriteResult:
        store, kind = f"{locator.name}:{locator.body}", locator.name
        match World.fails(store, "refused", "down", "killed before"):
            case "refused":
                raise AccessDeniedError(f"{store} refuses")
            case "down":
                raise UnavailableError(f"{store} does not respond")
            case "killed before":
                raise KilledError
        wanted = {field.key: field.value.reveal_bytes() for field in fields}
        existing = World.values.get(store)
        if kind == "blind":
            if mode == "create" and existing is not None:
                raise WriteConflictError(f"{store} is there")
            after: dict[str, bytes] | None = {**(existing or {}), **wanted}
        else:
            marked = kind != "plain" and marker in World.markers.get(store, ())
            after = merge_fields(existing, wanted, mode=mode, marked=marked)
        if after is not None:
            World.values[store] = after
            World.writes.append(store)
            World.history.extend((store, value) for value in wanted.values())
            if kind in ("marked", "proven"):
                World.markers.setdefault(store, []).append(marker)
        if World.fails(store, "killed between"):
            raise KilledError
        if kind == "late":
            World.markers.setdefault(store, []).append(marker)
        match World.fails(store, "lost", "killed after"):
            case "lost":
                raise UnknownOutcomeError(f"{store} did not respond")
            case "killed after":
                raise KilledError
        return WriteResult(locator, known=kind != "blind", already=after is None)


class Drawers(Sink):
    def describe(self, locator: Locator, mode: Mode) -> str:
        return f"{mode} {locator.body}"

    def put(
        self, locator: Locator, fields: Sequence[SinkField], *, mode: Mode, marker: str
    ) -> WriteResult:
        store, is_written = f"{locator.name}:{locator.body}", False
        there = World.values.setdefault(store, {})
        for key, value in fields:
            marks = World.markers.setdefault(f"{store}#{key}", [])
            before = {key: there[key]} if key in there else None
            wanted = {key: value.reveal_bytes()}
            if merge_fields(before, wanted, mode=mode, marked=marker in marks) is not None:
                there |= wanted
                is_written = True
            marks.append(marker)
            if World.fails(store, "killed between"):
                raise KilledError
        return WriteResult(locator, already=not is_written)
