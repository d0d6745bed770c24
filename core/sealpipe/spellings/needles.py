"""What is searched for of a value: itself, hex and base64, of at most so many bytes each."""

from __future__ import annotations

import codecs
import json
import os
import re
from binascii import b2a_base64
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

MIN_LENGTH: Final = 4
"""Minimum characters of what is searched for: what is shorter may be common text.

Masks in CI have it, too.
"""
WIDTH: Final = 64
"""Bytes of a piece of a long value."""
_REST: Final = 16
"""Minimum bytes of the last piece of a long value: a shorter one might be common text."""
_CONTROLS: Final = bytes({*range(32)} - {*b"\t\n\v\f\r\x1b"})
_MOST_CONTROLS: Final = 32
"""A text without a known encoding has at most one control character in so many bytes, or one."""
_TO_SAFE: Final = bytes.maketrans(b"+/", b"-_")
_GO: Final = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}
_GSON: Final = _GO | {ord(sign): f"\\u{ord(sign):04x}" for sign in "='"}
_DOTNET: Final = re.compile(r"""\\\\|\\"|[&'<>+`]|[^\x00-\x7e]""")
"""What .NET escapes in text that is JSON already, and pairs of backslashes, which stay."""


class Needle(NamedTuple):
    """Text to search for; `wraps` if line breaks may stand anywhere in it, as in base64."""

    text: bytes
    wraps: bool = False


def is_searchable(value: bytes) -> bool:
    """Return whether a value is long enough to be searched for.

    Common text would count as a find otherwise.
    """
    return len(os.fsdecode(value).strip()) >= MIN_LENGTH


def list_needles(values: Iterable[bytes], width: int = WIDTH) -> list[Needle]:
    """Return what is searched for of these values, in pieces of 4 to `width` bytes."""
    found = dict.fromkeys(each for value in values for each in _list_value(value, width))
    return [each for each in found if len(each.text) >= MIN_LENGTH]


def _list_value(value: bytes, width: int) -> Iterator[Needle]:
    text = _read_text(value)
    if text is not None:
        yield from _list_text(text, width)
    if text != value:
        yield from _list_binary(value, width)


def _read_text(value: bytes) -> bytes | None:
    """Return what somebody may read as text: in UTF-8, or as it is; None if nobody can."""
    with suppress(UnicodeDecodeError):
        if value.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return value.decode("utf-16").encode(errors="surrogatepass")
    with suppress(UnicodeDecodeError):
        value.decode()
        return value
    controls = len(value) - len(value.translate(None, _CONTROLS))
    return value if controls <= max(1, len(value) // _MOST_CONTROLS) else None


def _list_text(value: bytes, width: int) -> Iterator[Needle]:
    """Yield a text and each of its lines, and all forms of them."""
    text = os.fsdecode(value)
    lines = (text, *re.split(r"\r\n|[\r\n]", text), *text.splitlines())
    # Line breaks around a value stay in the output: it keeps its lines.
    bare = dict.fromkeys(each for line in lines for each in (line.strip("\r\n"), line.strip()))
    for each in bare:
        if len(each.strip()) >= MIN_LENGTH:
            yield from _list_forms(each, width)


def _list_forms(text: str, width: int) -> Iterator[Needle]:
    yield from _list_binary(os.fsencode(text), width)
    for encoding in ("utf-16-le", "utf-16-be"):
        wide = text.encode(encoding, "surrogatepass")
        yield from (Needle(piece) for piece in split(wide, width))
    for spelled in _list_json(text):
        yield from list_encoded(spelled, width, hexes=False)


def _list_binary(value: bytes, width: int) -> Iterator[Needle]:
    """Yield bytes as they are, in base64 and in hex."""
    yield from (Needle(piece) for piece in split(value, width))
    ended = [b2a_base64(value + end, newline=False) for end in (b"", b"\n")]
    whole = [*ended, *(each.rstrip(b"=") for each in ended)]
    yield from (
        Needle(piece, wraps=True) for form in _list_alphabets(whole) for piece in split(form, width)
    )
    yield from list_encoded(value, width)


def list_encoded(value: bytes, width: int = WIDTH, *, hexes: bool = True) -> Iterator[Needle]:
    """Yield a value in base64, in both alphabets at each alignment, and in hex."""
    forms = _list_alphabets(_list_base64_forms(value))
    if hexes:
        forms += [value.hex().encode(), value.hex().upper().encode()]
    yield from (Needle(piece, wraps=True) for form in forms for piece in split(form, width))


def _list_alphabets(forms: Iterable[bytes]) -> list[bytes]:
    """Return base64 in the standard alphabet, and in that of URLs where it differs."""
    return list(dict.fromkeys(each for form in forms for each in (form, form.translate(_TO_SAFE))))


def _list_json(text: str) -> set[bytes]:
    """Return a text as JSON writes it.

    In ASCII or not, harmless in HTML as Go, Gson and .NET do it, or in a script.
    """
    ascii_form, form = json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]
    forms = {ascii_form, form, _DOTNET.sub(_escape_as_dotnet, form)}
    forms |= {form.translate(_GO), form.translate(_GSON)}
    forms |= {form.replace("/", "\\/"), ascii_form.replace("/", "\\/")}
    return {os.fsencode(each) for each in forms} - {os.fsencode(text)}


def _escape_as_dotnet(found: re.Match[str]) -> str:
    if found[0] == "\\\\":
        return found[0]
    units = found[0][-1].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{int.from_bytes(units[at : at + 2]):04X}" for at in range(0, len(units), 2))


def _list_base64_forms(data: bytes) -> list[bytes]:
    """Return the base64 characters that only the data decides, for each of three alignments."""
    whole = [b2a_base64(bytes(before) + data, newline=False) for before in range(3)]
    return [
        text[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
        for before, text in enumerate(whole)
    ]


def split(form: bytes, width: int) -> Iterator[bytes]:
    """Yield a form, or its pieces.

    As wide as given, a rest that is not too common, and its last bytes.
    """
    if len(form) <= width:
        yield form
        return
    start = 0
    while len(form) - start >= min(_REST, width) or not start:
        end = _to_boundary(form, start + width)
        yield form[start:end]
        start = end
    yield form[_to_boundary(form, len(form) - width) :]


def _to_boundary(form: bytes, at: int) -> int:
    """Return the place, or up to three bytes before it, so that no UTF-8 character is cut."""
    for back in range(4):
        if at - back >= len(form) or form[at - back] & 0xC0 != 0x80:
            return min(at - back, len(form))
    return at
