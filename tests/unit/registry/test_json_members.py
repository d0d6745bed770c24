"""The members of a JSON object, changed in its text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpipe_plugins.secret_documents import decode_member, find_members, set_members

NAMES = st.text(max_size=6)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=5)


@given(
    OBJECTS,
    st.dictionaries(NAMES, st.text(max_size=8), min_size=1, max_size=4),
    st.sampled_from([None, 1]),
)
def test_what_is_set_is_set_and_all_else_stays_to_the_letter(
    there: dict[str, Any], new: dict[str, str], indent: int | None
) -> None:
    text = json.dumps(there, indent=indent, ensure_ascii=indent is None)
    after = set_members(text, new)
    assert json.loads(after) == {**there, **new}
    assert list(json.loads(after)) == list({**there, **new})
    before = {member.name: text[member.start : member.end] for member in find_members(text) or []}
    kept = {member.name: after[member.start : member.end] for member in find_members(after) or []}
    assert {name: kept[name] for name in before if name not in new} == {
        name: raw for name, raw in before.items() if name not in new
    }


@given(OBJECTS)
def test_a_text_is_read_as_it_is_and_what_is_no_text_is_like_none(there: dict[str, Any]) -> None:
    text = json.dumps(there)
    for member in find_members(text) or []:
        found, given_ = decode_member(text, member), there[member.name]
        if isinstance(given_, str):
            assert found == given_.encode()
        elif isinstance(given_, list | dict | None):
            assert found.startswith(b"\xff")
        else:
            assert found.decode() == json.dumps(given_)


@pytest.mark.parametrize(
    "text", ["", "[]", '"a"', "1", "null", '{"a": 1', '{"a"}', "{} x", "[" * 100_000]
)
def test_what_is_no_object_has_no_members(text: str) -> None:
    assert find_members(text) is None


def test_duplicate_members_are_both_reported() -> None:
    assert [
        member.name for member in find_members(' {"a":1 ,\n"b" : [{}] , "a" : "x"} ') or []
    ] == ["a", "b", "a"]
