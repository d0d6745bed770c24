"""Text with places: `email:{to}`, a message with `{link}` in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpipe.errors import UsageError
from sealpipe.reference.text import parse_template

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}", fullmatch=True)


@pytest.mark.parametrize(
    ("text", "names", "filled"),
    [
        ("", (), ""),
        ("plain", (), "plain"),
        ("{a}", ("a",), "<a>"),
        ("x{a}{b}y{a}", ("a", "b", "a"), "x<a><b>y<a>"),
        ("{{a}}", (), "{a}"),
        ("{{{a}}}", ("a",), "{<a>}"),
        ("{a.b-c_1}", ("a.b-c_1",), "<a.b-c_1>"),
        ("}}{{", (), "}{"),
    ],
)
def test_places_are_named_and_filled(text: str, names: tuple[str, ...], filled: str) -> None:
    pattern = parse_template(text, "the text")
    assert pattern.names == names
    assert pattern.fill({name: f"<{name}>" for name in names}) == filled


@pytest.mark.parametrize(
    "text", ["{", "}", "{}", "{a", "a}", "{1}", "{a b}", "{{a}", "{a}}", "{a!r}", "{a:>9}", "{é}"]
)
def test_any_other_brace_is_an_error(text: str) -> None:
    with pytest.raises(UsageError, match="in the text that is not part of a placeholder") as caught:
        parse_template(text, "the text")
    assert "{{" in caught.value.remedy


@given(st.lists(st.tuples(st.text(), NAMES, st.text())), st.text())
def test_what_fills_a_place_is_never_read_again(
    parts: list[tuple[str, str, str]], ending: str
) -> None:
    def escaped(text: str) -> str:
        return text.replace("{", "{{").replace("}", "}}")

    text = "".join(f"{escaped(before)}{{{name}}}" for before, name, _ in parts) + escaped(ending)
    values = {name: value for _, name, value in parts}
    filled = "".join(before + values[name] for before, name, _ in parts) + ending
    assert parse_template(text, "the text").fill(values) == filled
