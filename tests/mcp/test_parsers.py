"""Whatever a client sends, and whatever stands in a file: it is read as what it is, or refused and
not quoted.
"""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from sealpipe.errors import PolicyError, UsageError
from sealpipe.mcp import records, stdio
from sealpipe.mcp.elicitation import CONFIRM, LINK, Rounds
from sealpipe.mcp.models import check_arguments
from sealpipe.mcp.tools import load_tools
from sealpipe.reference import parse
from sealpipe.state.creations import Creation, note_creation

TOOLS = load_tools()
VALID: dict[str, dict[str, Any]] = {
    "request_secret": {
        "prompts": [{"text": "Password", "type": "password", "id": "pw"}, {"text": "User"}],
        "to": "vault:secret/app#*",
        "title": "t",
        "send": ["email:a@example.com"],
    },
    "wait_for_submission": {"code": "abc", "seconds": 10},
    "collect_secret": {"code": "abc"},
    "share_secret": {
        "fields": [{"reference": "env:X", "label": "Password"}],
        "to": "email:a@example.com",
        "title": "t",
        "expires_in": "2h",
        "views": 2,
    },
    "run_with_secrets": {
        "command": ["psql", "-c"],
        "environment": {"PGPASSWORD": "env:X"},
        "seconds": 5,
    },
    "list": {},
    "status": {"code": "abc"},
    "expire": {"code": "abc"},
    "check": {},
}
CANARY = "canary-that-nobody-quotes"
junk = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-5, 1000),
        st.floats(allow_nan=False),
        st.text(max_size=5),
    )
    | st.sampled_from([CANARY, CANARY * 99, "", "\ud800", 10**30]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["text", CANARY]), inner)
    ),
    max_leaves=5,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [path, *(place for name, item in items for place in places(item, (*path, name)))]


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The value with something else at a place; a new member where that is an object's."""
    if not path:
        return {**value, CANARY: new} if isinstance(value, dict) else new
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[path[0]] = put(value[path[0]], path[1:], new) if path[1:] else new
    return changed


@pytest.mark.parametrize("name", VALID)
def test_valid_arguments_are_valid(name: str) -> None:
    check_arguments(TOOLS[name].arguments, VALID[name])
    Draft202012Validator.check_schema(TOOLS[name].schema)
    Draft202012Validator.check_schema(TOOLS[name].output)


@settings(max_examples=200)
@given(st.sampled_from(list(VALID)), st.data(), junk)
def test_what_a_schema_refuses_is_refused_and_not_quoted(
    name: str, data: st.DataObject, new: Any
) -> None:
    schema = TOOLS[name].schema
    value = put(VALID[name], data.draw(st.sampled_from(places(VALID[name]))), new)
    refusal = ""
    try:
        check_arguments(TOOLS[name].arguments, value)
    except UsageError as error:
        refusal = f"{error.message} {error.remedy}"
    assert CANARY not in refusal
    assert refusal or Draft202012Validator(schema).is_valid(value)


LONG = "canary of words " * 9
LONG_FORMS = (
    "{}",
    "{}:x",
    "env:{}",
    "{}=env:X",
    "env:X?{}=1",
    "env:X?trim={}",
    "email:{{{}}}",
    "email:{}",
)
ODD = (
    "",
    "env:X#a,b",
    "env:#*",
    "email:{to}",
    "email:a\nb",
    "7d",
    "0s",
    "9" * 30 + "d",
    "a\u202eb",
    "a\0b",
    "PATH",
)
words = st.sampled_from([*ODD, *(form.format(LONG) for form in LONG_FORMS)])


@given(
    st.sampled_from(["share_secret", "run_with_secrets", "request_secret"]),
    st.data(),
    words | st.text(max_size=9),
)
def test_what_a_parser_refuses_is_refused_and_hardly_quoted(
    name: str, data: st.DataObject, new: str
) -> None:
    tool, value = TOOLS[name], VALID[name]
    path = data.draw(
        st.sampled_from([each for each in places(value) if isinstance(find(value, each), str)])
    )
    value = put(value, path, new)
    try:
        use = tool.describe(tool.read(value))
    except UsageError as error:
        refusal = f"{error.message} {error.remedy}"
    else:
        refusal = ""
        assert [parse(str(each)) for each in use.sources] == list(use.sources)
        assert not {"{", "}", "\n"} & set("".join(each.to for each in use.recipients))
        assert use.command == tuple(value.get("command", ()))
    assert LONG[:61] not in refusal


def find(value: Any, path: tuple[Any, ...]) -> Any:
    """What stands at a place."""
    return find(value[path[0]], path[1:]) if path else value


@given(
    st.text(), st.sampled_from(["{}", "[]", "1", '{"round": null}', '{"round": ["x"]}', "[" * 9999])
)
def test_no_state_but_ours_is_a_round(text: str, known: str) -> None:
    rounds = Rounds()
    ours = rounds.open(LINK, {})
    for state in (text, known, ours):
        with pytest.raises(PolicyError):
            rounds.take(state)
        assert rounds.find(state, CONFIRM) is None
    assert rounds.find(ours, LINK) is not None


@given(st.lists(st.sampled_from(["", "a", "é" * 5, "x" * 8, "x" * 9, "y" * 30, "\r"]), max_size=6))
def test_only_a_line_that_is_too_long_is_replaced(lines: list[str]) -> None:
    text = "\n".join(lines)
    with mock.patch.object(stdio, "MAX_LINE", 8):
        reader = stdio.BoundedLines(io.BytesIO(text.encode()), encoding="utf-8", newline="\n")
        read = list(iter(reader.readline, ""))
    whole = list(iter(io.StringIO(text, "\n").readline, ""))
    assert read == [line if len(line.removesuffix("\n")) <= 8 else "{}\n" for line in whole]


texts = st.text(max_size=8)
creations = st.builds(
    Creation,
    kind=st.sampled_from(["share", "request"]),
    base_url=st.just("https://api.example/v1"),
    short_code=texts,
    created_at=st.just(datetime(2026, 11, 23, 17, 20, tzinfo=UTC)),
    name=st.text("0123456789abcdef", min_size=12, max_size=12).map(records.make_name),
    title=st.none() | texts,
    notes=st.builds(
        records.Notes,
        client=texts,
        sent_to=st.lists(texts),
        sink=st.none() | texts,
        prompts=st.lists(st.lists(texts)),
    ).map(records.Notes.model_dump),
)


@given(creations)
def test_what_was_made_is_read_as_it_was_written(creation: Creation) -> None:
    with TemporaryDirectory() as place:
        note_creation(Path(place) / "created", creation)
        (found,) = records.list_created(creation.base_url, Path(place) / "mcp")
        assert (found.known, found.notes.model_dump()) == (creation, creation.notes)
        assert [*records.list_created("https://other.example/v1", Path(place) / "mcp")] == []


@given(creations, junk.filter(bool))
def test_what_other_programs_note_is_not_ours(creation: Creation, notes: Any) -> None:
    with TemporaryDirectory() as place:
        note_creation(Path(place) / "created", replace(creation, notes=notes))
        assert [*records.list_created(creation.base_url, Path(place) / "mcp")] == []
