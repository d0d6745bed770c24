"""A value is found in any mix of spellings, wherever and however the text around it goes; nothing else is."""

from __future__ import annotations

import base64
import html
import itertools
import json
import re
import time
from collections.abc import Callable
from html.entities import codepoint2name
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealpipe.run.redaction import Redactor
from sealpipe.spellings import Finder, is_searchable
from sealpipe.spellings.finder import match
from sealpipe.spellings.needles import list_needles
from sealpipe.testing.contract import CANARY, find_leaks
from unit.spellings.programs import PYTHON

SIGNS = "\\\"'%&+<>/;#=-_ \n\t"
VALUES = (
    st.one_of(
        st.text("abcdefnrtux0123456789" + SIGNS, min_size=4, max_size=16),
        st.text("abcXYZ129ü漢🙂" + SIGNS, min_size=4, max_size=16),
        st.text(st.characters(exclude_categories=["Cs"]), min_size=4, max_size=12),
    )
    .map(str.strip)
    .filter(lambda text: is_searchable(text.encode()))
)
AROUND = st.text("ab41u0\\\"'%&#x;+ \nü", max_size=6)


def spell(character: str) -> list[str]:
    """The spellings of a character."""
    code = ord(character)
    units = character.encode("utf-16-be")
    spelled = [
        character,
        "".join(f"\\u{int.from_bytes(units[at : at + 2]):04x}" for at in range(0, len(units), 2)),
        "".join(f"\\u{int.from_bytes(units[at : at + 2]):04X}" for at in range(0, len(units), 2)),
        f"\\u{{{code:x}}}",
        f"\\U{code:08x}",
        f"\\x{{{code:X}}}",
        "".join(f"\\x{byte:02x}" for byte in character.encode()),
        "".join(f"\\{byte:03o}" for byte in character.encode()),
        "".join(f"%5Cu{int.from_bytes(units[at : at + 2]):04x}" for at in range(0, len(units), 2)),
        "".join(f"%{byte:02x}" for byte in character.encode()),
        "".join(f"%{byte:02X}" for byte in character.encode()),
        f"&#{code};",
        f"&#x{code:X};",
        f"&#{'0' * 8}{code};",
        f"&#X{'0' * 8}{code:x};",
    ]
    if code in codepoint2name:
        spelled.append(f"&{codepoint2name[code]};")
    if not character.isalnum() and " " <= character <= "~":
        spelled += [f"\\{character}", f"\\\\\\{character}"]
    spelled += {
        "'": ["''", "'\\''", "'\"'\"'"],
        '"': ['""'],
        " ": ["+", "\n", "\r\n  ", "\\\n\t\\ "],
        "\n": ["\\n", "\r\n"],
    }.get(character, [])
    return spelled


ENCODERS: dict[str, Callable[[str], str]] = {
    "JSON": lambda text: json.dumps(text)[1:-1],
    "JSON, not ASCII": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "JSON of Go": lambda text: re.sub("[<>&]", lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text)[1:-1]),
    "a URL": lambda text: quote(text, safe=""),
    "a form": quote_plus,
    "HTML": html.escape,
    "CSV": lambda text: text.replace('"', '""'),
    "a shell": lambda text: text.replace("'", "'\\''"),
}


@st.composite
def written(draw: st.DrawFn) -> tuple[str, str]:
    """A value, and how it is written."""
    value = draw(VALUES)
    text = "".join(draw(st.sampled_from(spell(character))) for character in value)
    if not re.search(r"\\[ux]\{", text):
        for name in draw(st.lists(st.sampled_from(sorted(ENCODERS)), max_size=2)):
            text = ENCODERS[name](text)
    return value, text


def redact(finder: Finder, *pieces: bytes) -> bytes:
    redactor = Redactor(finder)
    return b"".join([*(redactor.feed(piece) for piece in pieces), redactor.finish()])


@given(written(), AROUND, AROUND, st.data())
def test_any_value_in_any_mix_of_spellings_is_found_however_it_is_cut(
    case: tuple[str, str], before: str, after: str, data: st.DataObject
) -> None:
    value, text = case
    finder = Finder([value.encode()])
    stream, start = (before + text + after).encode(), len(before.encode())
    assert any(begin <= start and start + len(text.encode()) <= end for begin, end in finder.find(stream)), stream
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=4)))
    pieces = [stream[at:to] for at, to in itertools.pairwise([0, *cuts, len(stream)])]
    assert redact(finder, *pieces) == redact(finder, stream)
    assert redact(finder, *(stream[at : at + 1] for at in range(len(stream)))) == redact(finder, stream)


@settings(max_examples=30)  # each tries some hundred needles at every place
@given(
    st.lists(written(), min_size=1, max_size=3),
    st.lists(st.text("ab01u\\\"'%&#x; \n", max_size=12), min_size=4, max_size=4),
)
def test_the_quick_look_misses_nothing(cases: list[tuple[str, str]], around: list[str]) -> None:
    """The same as every needle tried at every place."""
    values = [value.encode() for value, _ in cases]
    stream = "".join(itertools.chain.from_iterable(zip(around, [text for _, text in cases], strict=False))).encode()
    finder = Finder(values)
    slow = bytearray(len(stream))
    for needle in list_needles(values):
        for at in range(len(stream)):
            end, _ = match(stream, at, needle, {})
            slow[at : max(at, end)] = b"\1" * max(0, end - at)
    quick = bytearray(len(stream))
    for start, end in finder.find(stream):
        quick[start:end] = b"\1" * (end - start)
    assert quick == slow


@given(VALUES)
def test_what_differs_in_its_letters_passes_byte_for_byte(value: str) -> None:
    other = value.translate({ord(each): "q" for each in value if each.isalnum()})
    if all(re.search("[a-z0-9]", line) for line in value.splitlines()) and "q" not in value.lower():
        assert redact(Finder([value.encode()]), other.encode()) == other.encode()


@given(st.binary(max_size=300), st.lists(st.binary(max_size=50), max_size=6))
def test_bytes_without_a_value_pass_as_they_are(value: bytes, pieces: list[bytes]) -> None:
    finder = Finder([value, b"a value", "ein Wért".encode()])
    data = b"".join(pieces)
    if not finder.find(data):
        assert redact(finder, *pieces) == data


@pytest.mark.parametrize("name", sorted(ENCODERS))
def test_the_contracts_of_plugins_see_a_leak_however_it_is_written(name: str) -> None:
    assert find_leaks(f"it failed: {ENCODERS[name](CANARY)} is wrong") == [CANARY]
    assert find_leaks(f"it failed: {ENCODERS[name](CANARY[1:])} is wrong") == []


def test_a_value_without_a_letter_of_ascii_is_found_too() -> None:
    finder = Finder(["пароль".encode(), b"!!\\&&%"])
    for text in ("пароль", "\\u043f\\u0430\\u0440\\u043e\\u043b\\u044c", quote("пароль"), html.escape("!!\\&&%")):
        assert redact(finder, f"it is {text}.".encode()) == b"it is ***."


@pytest.mark.parametrize("name", [name for name in PYTHON if name.startswith("as ")])
@pytest.mark.parametrize("before", range(3))
def test_json_of_other_programs_is_found_within_base64(name: str, before: int) -> None:
    value = "pa\"s&w'o<r>d=+`/\\x \u00fc1Z"
    finder = Finder([value.encode()])
    assert finder.find(base64.b64encode(b"-" * before + PYTHON[name](value).encode()))
    assert not finder.find(base64.b64encode(b"-" * before + PYTHON[name](value[::-1]).encode()))


def test_letters_in_octal_are_found() -> None:
    text = "".join(f"\\{byte:03o}" for byte in b"Secret-123")
    assert redact(Finder([b"Secret-123"]), f"it is {text}.".encode()) == b"it is ***."


def test_a_character_of_two_units_is_found_in_json_within_a_url() -> None:
    text = quote(json.dumps("pass\U0001f600word")[1:-1])
    finder = Finder(["pass\U0001f600word".encode()])
    assert redact(finder, *(text.encode()[at : at + 1] for at in range(len(text)))) == b"***"


def test_a_flood_of_backslashes_byte_by_byte_takes_no_quadratic_time() -> None:
    redactor, sign = Redactor(Finder([b"hunter2-secret"])), b"\\"
    begun = time.process_time()
    shown = b"".join(redactor.feed(sign) for _ in range(800)) + redactor.finish()
    assert (shown, time.process_time() - begun < 2) == (800 * sign, True)
