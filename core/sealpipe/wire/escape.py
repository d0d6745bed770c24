"""A value as the inside of a JSON string, slice by slice: a large one is never held a second time.

What comes out is what `JSON.stringify` gives: quotes, backslashes and control characters escaped, the rest
as it is. The slices are looked at with what runs at the speed of memory (bytes.replace, one `in` for each rare byte);
only a slice with a rare control character takes the slow way.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from json.encoder import encode_basestring

from sealpipe.errors import FieldError
from sealpipe.secret import Secret

SLICE = 64 * 1024
_USUAL = ((b"\\", b"\\\\"), (b'"', b'\\"'), (b"\n", b"\\n"), (b"\r", b"\\r"), (b"\t", b"\\t"))
_RARE = bytes(set(range(0x20)) - set(b"\n\r\t"))


def escaped(value: str | Secret) -> Iterator[bytes]:
    """The value's JSON form without its quotes, as UTF-8 in pieces.

    Raises FieldError with reason `lone-surrogate` or, for a Secret of bytes, `not-utf8`.
    """
    slices = _slices_of_text(value) if isinstance(value, str) else _slices_of_bytes(utf8(value))
    return map(_escaped, slices)


def utf8(value: Secret) -> bytes:
    """The bytes of a Secret; those it was made from are not checked. Raises FieldError, `lone-surrogate`."""
    try:
        return value.reveal_bytes()
    except UnicodeEncodeError:  # it holds the value: raised outside, it does not become a context
        pass
    raise FieldError("lone-surrogate", "the value is not text: half a surrogate pair")


def _slices_of_text(value: str) -> Iterator[bytes]:
    for start in range(0, len(value), SLICE):
        encoded = _encoded(value[start : start + SLICE])
        if encoded is None:
            raise FieldError("lone-surrogate", "the value is not text: half a surrogate pair")
        yield encoded


def _slices_of_bytes(value: bytes) -> Iterator[bytes]:
    # A slice may cut a character in two: the decoder carries the first half over. Only it needs to
    # know, since no byte of a character beyond ASCII is ever escaped.
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(value), SLICE):
        piece = value[start : start + SLICE]
        if not _is_utf8(decoder, piece, final=start + SLICE >= len(value)):
            raise FieldError("not-utf8", "the value is not UTF-8 text", remedy="say how to decode it")
        yield piece


def _is_utf8(decoder: codecs.IncrementalDecoder, piece: bytes, *, final: bool) -> bool:
    if piece.isascii() and not decoder.getstate()[0]:
        return True
    try:
        decoder.decode(piece, final)
    except UnicodeDecodeError:
        return False
    return True


def _encoded(text: str) -> bytes | None:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return None


def _escaped(piece: bytes) -> bytes:
    if any(map(piece.__contains__, _RARE)):
        # As Latin-1 every byte is one character, and those that are escaped are all ASCII.
        return encode_basestring(piece.decode("latin-1"))[1:-1].encode("latin-1")
    for plain, escape in _USUAL:
        piece = piece.replace(plain, escape)
    return piece
