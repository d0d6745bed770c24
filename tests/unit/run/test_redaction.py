"""The output of a command is searched for values however it is cut, and nothing else in it
changes.
"""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
import subprocess
import textwrap
from collections.abc import Callable, Iterable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpipe.run.redaction import MARK, Redactor
from sealpipe.spellings import Finder, is_searchable
from sealpipe.spellings.needles import list_needles

SECRET = 'p4ss "word"/ü+&\\ \'$x` end'
VALUE = SECRET.encode()


def redact(values: Iterable[bytes], *pieces: bytes) -> bytes:
    """What is shown of a stream that comes in pieces."""
    redactor = Redactor(Finder(values))
    return b"".join([*(redactor.feed(piece) for piece in pieces), redactor.finish()])


def redact_whole(patterns: Iterable[bytes], data: bytes) -> bytes:
    """The same, the slow way: every byte of every find is marked, and each run of marks is
    replaced.
    """
    found = bytearray(len(data))
    for pattern in patterns:
        for start in range(len(data)):
            if data.startswith(pattern, start):
                found[start : start + len(pattern)] = b"\1" * len(pattern)
    shown = b""
    for place, byte in enumerate(data):
        if not found[place]:
            shown += bytes([byte])
        elif not place or not found[place - 1]:
            shown += MARK
    return shown


FORMS = {
    "plain": VALUE,
    "JSON": json.dumps(SECRET)[1:-1].encode(),
    "JSON, not ASCII": json.dumps(SECRET, ensure_ascii=False)[1:-1].encode(),
    "JSON with escaped slashes": json.dumps(SECRET)[1:-1].replace("/", "\\/").encode(),
    "URL": quote(SECRET, safe="").encode(),
    "path of a URL": quote(SECRET).encode(),
    "form": quote_plus(SECRET).encode(),
    "URL in small letters": re.sub(
        "%..", lambda found: found[0].lower(), quote_plus(SECRET)
    ).encode(),
    "HTML": html.escape(SECRET).encode(),
    "hex": VALUE.hex().encode(),
    "HEX": VALUE.hex().upper().encode(),
    "JSON in JSON": json.dumps(json.dumps(SECRET))[3:-3].encode(),
    "JSON in JSON, not ASCII": json.dumps(
        json.dumps(SECRET, ensure_ascii=False), ensure_ascii=False
    )[3:-3].encode(),
    "URL in a URL": quote(quote(SECRET, safe=""), safe="").encode(),
    "Python": repr(SECRET)[1:-1].encode(),
    "Python's bytes": repr(VALUE)[2:-1].encode(),
    "YAML": SECRET.replace("'", "''").encode(),
    "a shell's argument": shlex.quote(SECRET)[1:-1].encode(),
    "a shell's trace": SECRET.replace("'", "'\\''").encode(),
    "a shell's export": re.sub(r'([\\"$`])', r"\\\1", SECRET).encode(),
    "UTF-16, little-endian": SECRET.encode("utf-16-le"),
    "UTF-16, big-endian": SECRET.encode("utf-16-be"),
    "base64": base64.b64encode(VALUE),
    "base64 of a line": base64.b64encode(VALUE + b"\n"),
    "base64url": base64.urlsafe_b64encode(VALUE).rstrip(b"="),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_value_is_found_wherever_its_form_is_cut(name: str) -> None:
    form, patterns = FORMS[name], [VALUE]
    data = b"before <" + form + b"> after"
    by_bytes = redact(patterns, *(data[at : at + 1] for at in range(len(data))))
    for cut in range(len(data) + 1):
        shown = redact(patterns, data[:cut], data[cut:])
        assert shown.startswith(b"before <***"), cut
        assert shown.endswith(b"> after"), cut
        assert shown == by_bytes, cut


@pytest.mark.parametrize(
    "shell",
    ["bash -c 'export -p'", "bash -c 'printf %q \"$V\"'", "bash -xc ': \"$V\"'", "sh -c export"],
)
def test_what_a_shell_tells_of_a_value_is_redacted(shell: str) -> None:
    environ = {"V": SECRET, "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    said = subprocess.run(
        shlex.split(shell),
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=True,
    ).stdout
    shown = redact([VALUE], said)
    assert (b"***" in shown, b"p4ss" in shown, b"word" in shown, b"end" in shown) == (
        True,
        False,
        False,
        False,
    )


@pytest.mark.parametrize("before", [b"", b"a", b"ab"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_value_inside_base64_is_found_at_each_alignment(
    before: bytes, encode: Callable[[bytes], bytes]
) -> None:
    value = b"\xfb\xef\xbe?>~~~ value"
    data = encode(before + value + b"~ and more")
    patterns = [value]
    for cut in range(len(data) + 1):
        first, last = -(-len(before) * 8 // 6), (len(before) + len(value)) * 8 // 6
        assert redact(patterns, data[:cut], data[cut:]) == data[:first] + MARK + data[last:]


@pytest.mark.parametrize("width", [64, 76])
def test_long_base64_is_found_in_lines(width: int) -> None:
    value = bytes(range(33, 126)) * 5
    wrapped = "\n".join(textwrap.wrap(base64.b64encode(value).decode(), width)).encode()
    shown = redact([value], wrapped)
    assert shown.startswith(MARK)
    assert len(shown) < len(MARK) + 16


def test_each_line_of_a_value_is_found_also_without_its_indent() -> None:
    patterns = [b"-----BEGIN-----\r\n  first line\nx\n    second\n"]
    assert redact(patterns, b"first line, second, x") == b"***, ***, x"
    assert redact(patterns, b"-----BEGIN-----\n") == b"***\n"


def test_a_part_of_a_long_value_is_found() -> None:
    value = bytes(range(33, 126)) * 3
    assert redact([value], value) == MARK
    assert redact([value], value[:150]) == MARK + value[128:150]


def test_little_is_held_back_however_long_a_value_is() -> None:
    assert max(len(needle.text) for needle in list_needles([bytes(range(33, 126)) * 1000])) == 64


def test_a_line_is_searched_as_a_large_piece_is() -> None:
    """A line is looked through in another way: what is found in it is the same."""
    patterns = [VALUE]
    for form in FORMS.values():
        for around in (0, 100, 10_000):
            assert (
                redact(patterns, b"." * around + form + b"." * around)
                == b"." * around + MARK + b"." * around
            )


def test_line_breaks_around_a_value_stay() -> None:
    assert redact([b"value\n"], b"value\nnext") == b"***\nnext"


def test_short_values_are_not_searched_for() -> None:
    assert not is_searchable(b"abc")
    assert not is_searchable(b" abc\n")
    assert not is_searchable("äöü".encode())
    assert is_searchable(b"abcd")
    assert list_needles([b"abc"]) == []


def test_values_that_are_no_text_are_found() -> None:
    value = b"\xff\xfe\x00\x80secret\xff"
    data = b"\x00\xff" + value + b"\xff\x00"
    assert redact([value], data) == b"\x00\xff***\xff\x00"


def test_values_that_overlap_or_touch_are_replaced_once() -> None:
    patterns = [b"abcdef", b"defghi", b"jklm"]
    data = b"<abcdefghijklm>"
    for cut in range(len(data) + 1):
        assert redact(patterns, data[:cut], data[cut:]) == b"<***>"


PATTERNS = st.sets(st.text("ab", min_size=4, max_size=12).map(str.encode), max_size=4)
PIECES = st.lists(st.text("abc", max_size=12).map(str.encode), max_size=12)


@given(PATTERNS, PIECES)
def test_any_cutting_gives_what_the_whole_gives(patterns: set[bytes], pieces: list[bytes]) -> None:
    shown = redact(patterns, *pieces)
    assert shown == redact_whole(patterns, b"".join(pieces))
    assert not any(pattern in shown for pattern in patterns)


@given(
    st.sets(st.binary(min_size=4, max_size=9), max_size=3),
    st.lists(st.binary(max_size=20), max_size=6),
)
def test_bytes_without_a_value_pass_unchanged(patterns: set[bytes], pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    if not any(pattern in data for pattern in patterns):
        assert redact(patterns, *pieces) == data


@given(PATTERNS, PIECES)
def test_no_more_than_a_possible_value_is_held_back(
    patterns: set[bytes], pieces: list[bytes]
) -> None:
    """What is not shown yet is covered by a value, or begins one; so it is never longer than the
    longest.
    """
    redactor = Redactor(Finder(patterns))
    fed = b""
    for piece in pieces:
        fed += piece
        redactor.feed(piece)
        begun = [
            each[:size]
            for each in patterns
            for size in range(1, len(each))
            if fed.endswith(each[:size])
        ]
        assert redactor.held == max(map(len, begun), default=0)


@given(
    PATTERNS,
    st.lists(st.one_of(st.none(), st.text("abc", max_size=6).map(str.encode)), max_size=16),
)
def test_a_pause_shows_at_most_three_bytes_of_a_value(
    patterns: set[bytes], pieces: list[bytes | None]
) -> None:
    redactor = Redactor(Finder(patterns))
    shown = b""
    for piece in pieces:
        shown += redactor.settle() if piece is None else redactor.feed(piece)
    shown += redactor.finish()
    assert not any(pattern in shown for pattern in patterns)
    data = b"".join(piece for piece in pieces if piece is not None)
    if not any(pattern in data for pattern in patterns):
        assert shown == data


def test_a_prompt_shows_while_nothing_more_comes() -> None:
    redactor = Redactor(Finder([b"ple-secret"]))
    assert redactor.feed(b"continue, please? p") == b"continue, please? "
    assert redactor.settle() == b"p"
    assert redactor.settle() == b""
    assert redactor.feed(b"le") == b""
    assert redactor.settle() == b"le"
    assert redactor.feed(b"-se") == b""
    assert redactor.settle() == b"", "four bytes are a part of the value worth hiding"
    assert redactor.feed(b"cret!") == b"***!"
