"""base64 and base64url as the wire format wants them: one text for the same bytes, nothing else accepted.

Specification: Client-side encryption, "Primitives and encodings". Python's own decoders drop junk, take
missing padding or trailing bits that no encoder writes; two texts for one value would make a link or a
token comparable in one place and not in the other.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterable, Iterator
from typing import NoReturn
from urllib.parse import quote, unquote_to_bytes

from sealpipe.errors import EncodingError, PayloadTooLargeError, WireError

PLAINTEXT_LIMIT = 16 * 1024 * 1024
"""Bytes of plaintext that we seal at most. The service states no limit (gaps: "plaintext size")."""

_STANDARD = re.compile(r"[A-Za-z0-9+/]*(=*)", re.ASCII)
_URL_SAFE = re.compile(r"[A-Za-z0-9_-]*(=*)", re.ASCII)
_TO_URL = bytes.maketrans(b"+/", b"-_")
_FROM_URL = bytes.maketrans(b"-_", b"+/")


def encode_base64(data: bytes | bytearray | memoryview) -> str:
    """Bytes as standard base64 with padding (RFC 4648 section 4)."""
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def decode_base64(text: str) -> bytes:
    """The bytes of standard base64 with padding (RFC 4648 section 4).

    Raises EncodingError with reason `not-base64` (a character outside the alphabet, white space too),
    `bad-padding` (missing, superfluous or misplaced) or `non-canonical` (bits after the last byte).
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

    Raises EncodingError with reason `not-base64url` (a character outside the alphabet, `+` and `/` too),
    `bad-padding` (any `=`, or a length that no bytes have) or `non-canonical` (bits after the last byte).
    """
    raw = _ascii(text, "not-base64url")
    if not _URL_SAFE.fullmatch(text) or b"=" in raw or len(raw) % 4 == 1:
        _refuse(text, _URL_SAFE, "not-base64url")
    data = binascii.a2b_base64(raw.translate(_FROM_URL) + b"=" * (-len(raw) % 4))
    if encode_base64url(data[len(data) // 3 * 3 :]) != text[len(data) // 3 * 4 :]:
        raise EncodingError("non-canonical", "the base64url text has bits after its last byte")
    return data


def exactly(size: int, value: object, error: type[WireError], reason: str, what: str) -> bytes:
    """`value` as bytes of exactly `size`, or `error(reason)`. Only the sizes are told, never the content."""
    if not isinstance(value, bytes | bytearray | memoryview):
        raise error(reason, f"{what} must be {size} bytes, not {type(value).__name__}")
    data = bytes(value)
    if len(data) != size:
        raise error(reason, f"{what} must be {size} bytes, not {len(data)}")
    return data


def within_limit(
    chunks: Iterable[bytes | bytearray | memoryview],
) -> Iterator[bytes | bytearray | memoryview]:
    """The chunks as they come; PayloadTooLargeError before the first one that passes PLAINTEXT_LIMIT bytes in all."""
    total = 0
    for chunk in chunks:
        total += memoryview(chunk).nbytes
        if total > PLAINTEXT_LIMIT:
            raise PayloadTooLargeError(f"more than {PLAINTEXT_LIMIT // 1024 // 1024} MiB of plaintext")
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
    """The encoded form: only `A-Za-z0-9._~-` and `%XX`."""
    return quote(short_code, safe="")


def decoded(word: str) -> str | None:
    """The other code that a word is the encoded form of; None where it can be nothing but a code as it is.

    The word may be a code as it is all the same: a code may look like the encoded form of another.
    """
    if "%" not in word:
        return None
    try:
        code = unquote_to_bytes(word).decode()
        return code if encoded(code) == word else None
    except (UnicodeDecodeError, UnicodeEncodeError):
        return None


def names(word: str, short_code: str) -> bool:
    """Whether a word, in either form, is that code."""
    return short_code in (word, decoded(word))
