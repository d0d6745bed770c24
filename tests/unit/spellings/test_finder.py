"""A value is found in any mix of spellings, wherever and however the text around it goes; nothing
else is.
"""

from __future__ import annotations

import base64
import hashlib
import html
import itertools
import json
import re
import time
from collections.abc import Callable
from html.entities import codepoint2name
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sealpipe.run.redaction import Redactor
from sealpipe.spellings import Finder, is_searchable
from sealpipe.spellings.finder import match
from sealpipe.spellings.needles import list_needles
from sealpipe.spellings.reading import Text
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
    "JSON of Go": lambda text: re.sub(
        "[<>&]", lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text)[1:-1]
    ),
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


ESCAPE = re.compile(
    r"\\(?:[xuU]\{?[0-9a-fA-F]*\}?|[0-7]{1,3}|[abefnrtv])|%[0-9a-fA-F]{2}|&#?[0-9A-Za-z]+;"
)


def is_promised(before: str, value: str, text: str) -> bool:
    """Whether the written value is found after that text: of short ones, not each, as the module
    says.
    """
    shares_escape = any(
        found.start() < len(before) < found.end()
        for each in (value, text)
        for found in ESCAPE.finditer(before + each)
    )
    return not shares_escape or len(value.encode()) >= 12 or text == value


def redact(finder: Finder, *pieces: bytes) -> bytes:
    redactor = Redactor(finder)
    return b"".join([*(redactor.feed(piece) for piece in pieces), redactor.finish()])


@given(written(), AROUND, AROUND, st.data())
def test_any_value_in_any_mix_of_spellings_is_found_however_it_is_cut(
    case: tuple[str, str], before: str, after: str, data: st.DataObject
) -> None:
    value, text = case
    assume(is_promised(before, value, text))
    finder = Finder([value.encode()])
    stream, start = (before + text + after).encode(), len(before.encode())
    assert any(
        begin <= start and start + len(text.encode()) <= end for begin, end in finder.find(stream)
    ), stream
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=4)))
    pieces = [stream[at:to] for at, to in itertools.pairwise([0, *cuts, len(stream)])]
    assert redact(finder, *pieces) == redact(finder, stream)
    assert redact(finder, *(stream[at : at + 1] for at in range(len(stream)))) == redact(
        finder, stream
    )


@pytest.mark.parametrize("line_break", ["\r\n", "\\r\\n", "%0D%0A", "\\\\r\\\\n"])
def test_a_space_that_became_a_line_break_is_found_however_it_is_cut(line_break: str) -> None:
    finder = Finder([b"0 000000000000"])
    stream = f"0{line_break}  000000000000".encode()
    for at in range(len(stream)):
        assert redact(finder, stream[:at], stream[at:]) == b"***"


@settings(max_examples=30)  # each tries some hundred needles at every place
@given(
    st.lists(written(), min_size=1, max_size=3),
    st.lists(st.text("ab01u\\\"'%&#x; \n", max_size=12), min_size=4, max_size=4),
)
def test_the_quick_look_misses_nothing(cases: list[tuple[str, str]], around: list[str]) -> None:
    """The same as every needle tried at every place."""
    assume(all(is_promised(before, *case) for before, case in zip(around, cases, strict=False)))
    values = [value.encode() for value, _ in cases]
    stream = "".join(
        itertools.chain.from_iterable(zip(around, [text for _, text in cases], strict=False))
    ).encode()
    finder = Finder(values)
    slow = bytearray(len(stream))
    for needle in list_needles(values):
        for at in range(len(stream)):
            end, _ = match(Text(stream), at, needle)
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
    for text in (
        "пароль",
        "\\u043f\\u0430\\u0440\\u043e\\u043b\\u044c",
        quote("пароль"),
        html.escape("!!\\&&%"),
    ):
        assert redact(finder, f"it is {text}.".encode()) == b"it is ***."


def test_what_is_no_text_is_searched_as_a_whole_only() -> None:
    """Its lines would be short, alike and many: they cost minutes where much is written."""
    value = bytes(range(256)) * 12
    assert min(len(each.text) for each in list_needles([value])) >= 16
    finder = Finder([value])
    spelled = "".join(f"\\x{byte:02x}" for byte in value).encode()
    for text in (value, value.hex().encode(), base64.b64encode(value), spelled):
        assert redact(finder, b"it is " + text + b".") == b"it is ***."


@pytest.mark.parametrize(
    "text",
    [
        "größer\nals ein Wort".encode("latin-1"),
        b"gr\xf6\xdfer\r\nals ein Wort\r\n\x1a",
        "größer\nals ein Wort\n".encode("utf-16"),
        "größer\nals ein Wort\n\0\1\2".encode(),
    ],
)
def test_a_text_of_another_encoding_is_searched_line_by_line(text: bytes) -> None:
    for line in ("als ein Wort".encode(each) for each in ("ascii", "utf-16-le")):
        assert redact(Finder([text]), b"it is " + line + b".") == b"it is ***."


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


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("letter", "ux")
def test_letters_in_braces_are_found_in_a_url(letter: str, times: int) -> None:
    text = "".join(f"\\{letter}{{{ord(sign):x}}}" for sign in "Secret-123")
    for _ in range(times):
        text = quote(text, safe="")
    finder = Finder([b"Secret-123"])
    assert redact(finder, *(text.encode()[at : at + 1] for at in range(len(text)))) == b"***"


def test_a_character_of_two_units_is_found_in_json_within_a_url() -> None:
    text = quote(json.dumps("pass\U0001f600word")[1:-1])
    finder = Finder(["pass\U0001f600word".encode()])
    assert redact(finder, *(text.encode()[at : at + 1] for at in range(len(text)))) == b"***"


FLOODS = [
    b"\\",
    b"%5c",
    b"%255c",
    b"\\'",
    b"'\\''",
    b"'",
    b'"',
    b"'\"'\"'",
    b"%27",
    b"&#39;",
    b"\\u0027",
    b"%0a",
    b"\r\n",
]
FLOODED = [
    b"hunter2-secret",
    b"0000-1111",
    b"!!!!????",
    b"a'b\"c\\d%e",
    b"a  b\n  c'd",
    b"it's \"her's\"",
    b"\\d+\\w{4}",
]


@pytest.mark.parametrize("flood", FLOODS, ids=repr)
@pytest.mark.parametrize(
    ("size", "step", "limit"), [(8192, 8192, 20), (400, 1, 5)], ids=["whole", "byte by byte"]
)
def test_a_flood_of_signs_is_read_in_time(flood: bytes, size: int, step: int, limit: float) -> None:
    """A bound for all values together, far above what is needed: some took minutes."""
    data = (flood * size)[:size]
    begun = time.thread_time()
    for value in FLOODED:
        redactor = Redactor(Finder([value]))
        shown = (
            b"".join(redactor.feed(data[at : at + step]) for at in range(0, size, step))
            + redactor.finish()
        )
        assert shown == data or b"***" in shown
    assert time.thread_time() - begun < limit


def test_a_flood_of_quotes_takes_time_in_proportion_to_it() -> None:
    """For a value of quotes, the worst that there is."""

    def cost(size: int) -> float:
        begun = time.thread_time()
        assert Finder([b"''''\"\"\"\""]).find(b"'" * size) == []
        return time.thread_time() - begun

    short, long = (min(cost(size) for _ in range(3)) for size in (256, 1024))
    assert long < 10 * short  # 4 times as much


def test_a_find_in_a_flood_of_quotes_covers_it() -> None:
    assert Finder([b"''''''"]).find(b"x" + b"'" * 2000 + b"x") == [(1, 2001)]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("ab'0000", "ab&amp;#x27;&amp;#x27;0000"),
        ("001000", "\\00100\\u{30}"),
        ("&0000", "%\\u0032\\u00360000"),
    ],
)
def test_what_the_docs_say_is_not_found_is_not_found(value: str, text: str) -> None:
    """A change that finds it also changes `sealpipe.spellings` and docs/how-to/run-a-command.md."""
    assert not Finder([value.encode()]).holds(text.encode())


def test_fifty_secrets_are_searched_nearly_as_fast_as_one_expression(
    record_property: Callable[[str, object], None],
) -> None:
    """Of CPU time, beside an expression that stops at the same signs: other work on the machine
    takes caches from both.
    """
    values = [
        base64.b64encode(hashlib.sha256(b"%d" % number).digest())[: 8 + number % 30]
        for number in range(50)
    ]
    line = (
        b'%05d 2026-11-27T00:00:%02d INFO "GET /pictures/%d.png?size=%d HTTP/1.1" 200, took %d ms\n'
    )
    lines = [
        line % (number, number % 60, number * 7919 % 100_003, number % 9, number % 331)
        for number in range(20_000)
    ]
    log = b"".join(lines)
    pieces = [log[at : at + 65536] for at in range(0, len(log), 65536)]
    expression = re.compile(rb"[A-Za-z0-9+/]{8,}")

    def search() -> None:
        redactor = Redactor(Finder(values))
        shown = [redactor.feed(piece) for piece in pieces]
        assert b"".join([*shown, redactor.finish()]) == log

    def measure(read: Callable[[], object]) -> float:
        begun = time.thread_time()
        read()
        return time.thread_time() - begun

    for _ in range(9):  # until nothing else took the caches
        ours = measure(search)
        theirs = measure(lambda: [expression.findall(piece) for piece in pieces])
        if ours / theirs <= 3:
            break
    else:
        pytest.fail(f"{ours:.3f} s, beside {theirs:.3f} s of one expression")
    record_property("figure", f"run's search: {len(log) / 1e6 / ours:.0f} MB a second of CPU time")
