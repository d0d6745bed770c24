"""References to fields: in order, each document fetched once."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from sealpipe.errors import (
    AccessDeniedError,
    PluginError,
    ReferenceSyntaxError,
    ReferenceValueError,
    SecretNotFoundError,
    UsageError,
)
from sealpipe.plugin import Document, Locator
from sealpipe.reference import parse, parse_field
from sealpipe.registry import Registry
from sealpipe.sources.resolve import Cache, resolve, resolve_bytes, resolve_value
from sealpipe.wire.fields import Field
from support.backends import as_nobody, fetched, opened, registry, value_of

ENV = {"A": "a", "B": "b", "JSON": '{"x": "1", "y": "2"}', "EMPTY": ""}


class Counting(Registry):
    """A registry that writes down what it was asked to fetch."""

    def __init__(self) -> None:
        super().__init__(environ=ENV, stdin=io.BytesIO(b"piped"))
        self.asked: list[list[str]] = []

    def fetch(
        self, wanted: Mapping[str, Sequence[Locator]], deadline: float | None = None
    ) -> dict[Locator, Document | PluginError]:
        self.asked += [[locator.text for locator in locators] for locators in wanted.values()]
        return super().fetch(wanted, deadline)


def test_fields_come_in_the_order_of_their_references() -> None:
    fields = fetched("env:B", "text:t", "Again=env:A", "env:A", environ=ENV)
    assert [(f.key, opened(f)) for f in fields] == [
        ("B", b"b"),
        ("t", b"t"),
        ("Again", b"a"),
        ("A", b"a"),
    ]


def test_a_document_is_fetched_once_source_by_source() -> None:
    found = Counting()
    texts = [
        "env:A",
        "text:t",
        "env:JSON?format=json#x",
        "X=env:A?trim=1",
        "env:JSON?format=json#y",
        "env:B",
    ]
    resolve([parse_field(text) for text in texts], lambda: found)
    assert found.asked == [["env:A", "env:JSON", "env:B"], ["text:t"]]


def test_a_cache_serves_several_flows_misses_too() -> None:
    found, cache = Counting(), Cache()
    resolve([parse_field("stdin:"), parse_field("env:NONE?optional=1")], lambda: found, cache)
    assert resolve_value(parse("stdin:"), lambda: found, cache).reveal() == "piped"
    assert resolve_value(parse("env:NONE?optional=1"), lambda: found, cache) is None
    assert found.asked == [["stdin:"], ["env:NONE"]]


def test_values_of_any_bytes_are_resolved(tmp_path: Path) -> None:
    (tmp_path / "odd").write_bytes(b"\xff\0\n")
    texts = [
        f"file:{tmp_path}/odd",
        "env:NONE",
        "env:NONE?optional=1",
        "text:t",
        "env:JSON?format=json#*",
        "env:A?type=multiline",
    ]
    values = resolve_bytes([parse(text) for text in texts], lambda: Counting())
    [odd], missing, left_out, [public], several, [typed] = values
    assert (odd.data.reveal_bytes(), odd.type, odd.is_secret) == (b"\xff\0\n", "multiline", True)
    assert isinstance(missing, SecretNotFoundError)
    assert left_out == []
    assert (public.data.reveal_bytes(), public.type, public.is_secret) == (b"t", "text", False)
    assert [(each.label, each.data.reveal()) for each in several] == [("x", "1"), ("y", "2")]
    assert typed.type == "multiline"


def test_a_field_stands_as_it_is_and_needs_no_registry() -> None:
    def none() -> Registry:
        raise AssertionError("asked for")

    field = Field("k", "v")
    assert resolve([field], none) == [field]


def test_labels_may_come_twice() -> None:
    assert [f.key for f in fetched("X=env:A", "X=env:B", environ=ENV)] == ["X", "X"]


@pytest.mark.parametrize("bad", ["nosuch:x", "env:A?nosuch=1"])
def test_nothing_is_fetched_where_one_reference_is_wrong(bad: str) -> None:
    found = Counting()
    with pytest.raises(ReferenceSyntaxError):
        resolve([parse_field("env:A"), parse_field(bad)], lambda: found)
    assert found.asked == []


def test_the_first_failure_in_order_is_raised() -> None:
    with pytest.raises(SecretNotFoundError, match="NO_ONE is not set"):
        fetched("env:A", "env:NO_ONE", "file:/nowhere/at/all", environ=ENV)


def test_optional_fields_fall_away() -> None:
    texts = ["env:EMPTY?optional=1", "env:NONE?optional=1", "file:/nowhere?optional=1", "env:A"]
    assert [f.key for f in fetched(*texts, environ=ENV)] == ["A"]


def test_no_field_at_all_is_an_error() -> None:
    with pytest.raises(UsageError, match="nothing to share"):
        fetched("env:EMPTY?optional=1", environ=ENV)


def test_optional_does_not_cover_what_may_not_be_read(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.write_text("x")
    locked.chmod(0)
    with as_nobody(), pytest.raises(AccessDeniedError):
        fetched(f"file:{locked}?optional=1")


def test_one_value_is_one_value() -> None:
    assert value_of("env:A", ENV) == "a"
    assert value_of("text:open", ENV) == "open"
    assert value_of("env:JSON?format=json#x", ENV) == "1"
    assert value_of("env:NONE?optional=1", ENV) is None
    with pytest.raises(ReferenceValueError, match="gives 2 values"):
        value_of("env:JSON?format=json#x,y", ENV)
    with pytest.raises(SecretNotFoundError):
        value_of("env:EMPTY", ENV)


def test_a_registry_has_the_sources_that_the_package_brings() -> None:
    found = registry()
    assert [found.source_info(name).name for name in ("env", "file", "stdin", "text",
        "dotenv")] == [
        "env", "file", "stdin", "text", "dotenv"
    ]  # fmt: skip
