"""The encodings of the wire format, strict.

Base64, base64url, percent-encoded short codes, escaped JSON strings.

Specification: Client-side encryption, "Primitives and encodings". Python's own decoders skip
invalid characters and accept missing padding and trailing bits that no encoder writes. With two
texts for one value, comparing links or tokens would fail.
"""

from __future__ import annotations

import binascii
import codecs
import re
from collections.abc import Iterable, Iterator
from typing import NoReturn
from urllib.parse import quote, unquote_to_bytes

from sealpipe.errors import EncodingError, FieldError, PayloadTooLargeError, WireError
from sealpipe.secret import Secret

PLAINTEXT_LIMIT = 16 * 1024 * 1024
"""Maximum size of a plaintext in bytes. The limit is ours: the specification states none."""

_STANDARD = re.compile(r"[A-Za-z0-9+/]*(=*)", re.ASCII)
_URL_SAFE = re.compile(r"[A-Za-z0-9_-]*(=*)", re.ASCII)
_TO_URL = bytes.maketrans(b"+/", b"-_")
_FROM_URL = bytes.maketrans(b"-_", b"+/")


def encode_base64(data: bytes | bytearray | memoryview) -> str:
    """Bytes as standard base64 with padding (RFC 4648 section 4)."""
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def decode_base64(text: str) -> bytes:
    """The bytes of standard base64 with padding (RFC 4648 section 4).

    Raises EncodingError with reason `not-base64` (a character outside the alphabet, white space
    too), `bad-padding` (missing, superfluous or misplaced) or `non-canonical` (bits after the last
    byte).
    """
    raw = _ascii(text, "not-base64")
    try:
        data = binascii.a2b_base64(raw, strict_mode=True)
    except binascii.Error:
        data = None
    if data is None or len(raw) % 4 or len(data) != len(raw) // 4 * 3 - raw[-2:].count(b"="):
        _refuse(text, _STANDARD, "not-base64")
    if binascii.b2a_base64(data[len(data) // 3 * 3 :], newline=False) != raw[len(data) // 3 * 4 :]:
        raise EncodingError("non-canonical", "the base64 text has bits after its last byte")
    return data


def encode_base64url(data: bytes | bytearray | memoryview) -> str:
    """Bytes as base64url without padding (RFC 4648 section 5)."""
    return binascii.b2a_base64(data, newline=False).rstrip(b"=").translate(_TO_URL).decode("ascii")


def decode_base64url(text: str) -> bytes:
    """The bytes of base64url without padding (RFC 4648 section 5).

    Raises EncodingError with reason `not-base64url` (a character outside the alphabet, `+` and `/`
    too), `bad-padding` (any `=`, or a length that no bytes have) or `non-canonical` (bits after the
    last byte).
    """
    raw = _ascii(text, "not-base64url")
    if not _URL_SAFE.fullmatch(text) or b"=" in raw or len(raw) % 4 == 1:
        _refuse(text, _URL_SAFE, "not-base64url")
    data = binascii.a2b_base64(raw.translate(_FROM_URL) + b"=" * (-len(raw) % 4))
    if encode_base64url(data[len(data) // 3 * 3 :]) != text[len(data) // 3 * 4 :]:
        raise EncodingError("non-canonical", "the base64url text has bits after its last byte")
    return data


def exactly(size: int, value: object, error: type[WireError], reason: str, what: str) -> bytes:
    """`value` as bytes of exactly `size`.

    Raises `error(reason)`; its message has the sizes, never the content.
    """
    if not isinstance(value, bytes | bytearray | memoryview):
        raise error(reason, f"{what} must be {size} bytes, not {type(value).__name__}")
    data = bytes(value)
    if len(data) != size:
        raise error(reason, f"{what} must be {size} bytes, not {len(data)}")
    return data


def enforce_limit(
    chunks: Iterable[bytes | bytearray | memoryview],
) -> Iterator[bytes | bytearray | memoryview]:
    """Yield the chunks as they come.

    Raises PayloadTooLargeError before the one that exceeds PLAINTEXT_LIMIT in total.
    """
    total = 0
    for chunk in chunks:
        total += memoryview(chunk).nbytes
        if total > PLAINTEXT_LIMIT:
            raise PayloadTooLargeError(
                f"more than {PLAINTEXT_LIMIT // 1024 // 1024} MiB of plaintext"
            )
        yield chunk


def _ascii(text: str, reason: str) -> bytes:
    if not isinstance(text, str) or not text.isascii():
        raise EncodingError(reason, "not ASCII text")
    return text.encode("ascii")


def _refuse(text: str, alphabet: re.Pattern[str], reason: str) -> NoReturn:
    if alphabet.fullmatch(text):
        raise EncodingError("bad-padding", "the padding does not fit the length")
    if alphabet.fullmatch(text.replace("=", "")):
        raise EncodingError("bad-padding", "there is padding before the end")
    raise EncodingError(reason, "a character outside the alphabet")


def encoded(short_code: str) -> str:
    """A short code percent-encoded: only `A-Za-z0-9._~-` and `%XX`."""
    return quote(short_code, safe="")


def decoded(word: str) -> str | None:
    """The short code whose encoded form `word` is; None if it is not an encoded form.

    The word may be a short code itself all the same: one code may look like the encoded form of
    another.
    """
    if "%" not in word:
        return None
    try:
        code = unquote_to_bytes(word).decode()
        return code if encoded(code) == word else None
    except (UnicodeDecodeError, UnicodeEncodeError):
        return None


def names(word: str, short_code: str) -> bool:
    """Whether a word is that short code, plain or encoded."""
    return short_code in (word, decoded(word))


SLICE = 64 * 1024
"""Characters or bytes of a string that are escaped at a time, so that a large one is never copied
whole.
"""
# bytes.replace and `in` run at memory speed; only a slice with a rare control character is
# processed slowly
_USUAL = ((b"\\", b"\\\\"), (b'"', b'\\"'), (b"\n", b"\\n"), (b"\r", b"\\r"), (b"\t", b"\\t"))
_RARE = bytes(set(range(0x20)) - set(b"\n\r\t"))


def escaped(value: str | Secret) -> Iterator[bytes]:
    """The value as a JSON string without its quotes, as `JSON.stringify` writes it.

    UTF-8 in pieces.

    Raises FieldError with reason `lone-surrogate` or, for a Secret of bytes, `not-utf8`.
    """
    slices = _slices_of_text(value) if isinstance(value, str) else _slices_of_bytes(utf8(value))
    return map(_escaped, slices)


def utf8(value: Secret) -> bytes:
    """The UTF-8 bytes of a Secret; one made from bytes is not checked.

    Raises FieldError, reason `lone-surrogate`.
    """
    try:
        return value.reveal_bytes()
    except UnicodeEncodeError:  # it contains the value, and must not become our error's context
        pass
    raise FieldError("lone-surrogate", "the value is not text: half a surrogate pair")


def _slices_of_text(value: str) -> Iterator[bytes]:
    for start in range(0, len(value), SLICE):
        encoded = _encode_utf8(value[start : start + SLICE])
        if encoded is None:
            raise FieldError("lone-surrogate", "the value is not text: half a surrogate pair")
        yield encoded


def _slices_of_bytes(value: bytes) -> Iterator[bytes]:
    # A slice may cut a character in two: the decoder keeps the first half. Escaping is not
    # affected, because no byte of a non-ASCII character is ever escaped.
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(value), SLICE):
        piece = value[start : start + SLICE]
        if not _is_utf8(decoder, piece, final=start + SLICE >= len(value)):
            raise FieldError(
                "not-utf8",
                "the value is not UTF-8 text",
                remedy="a share holds text: give bytes as base64",
            )
        yield piece


def _is_utf8(decoder: codecs.IncrementalDecoder, piece: bytes, *, final: bool) -> bool:
    if piece.isascii() and not decoder.getstate()[0]:
        return True
    try:
        decoder.decode(piece, final)
    except UnicodeDecodeError:
        return False
    return True


def _encode_utf8(text: str) -> bytes | None:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return None


def _escaped(piece: bytes) -> bytes:
    if any(map(piece.__contains__, _RARE)):
        from json.encoder import encode_basestring  # other encodings do without json

        # As Latin-1 every byte is one character, and all characters that are escaped are ASCII.
        return encode_basestring(piece.decode("latin-1"))[1:-1].encode("latin-1")
    for plain, escape in _USUAL:
        piece = piece.replace(plain, escape)
    return piece
