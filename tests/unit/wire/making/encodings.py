"""base64, base64url and fragments: one text for the same bytes, nothing else."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from unit.wire.making.primitives import Vector, b64, b64url, noise, vector

STANDARD = [
    ("nothing at all", "", "success"),
    ("one byte", "/w==", "success"),
    ("two bytes", "+/8=", "success"),
    ("three bytes", "AAAA", "success"),
    (
        "every digit of the alphabet",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        "success",
    ),
    ("bits set after one byte", "/x==", "non-canonical"),
    ("the highest bit set after one byte", "/4==", "non-canonical"),
    ("bits set after two bytes", "+/9=", "non-canonical"),
    ("bits set after two bytes of zero", "AAB=", "non-canonical"),
    ("padding left out after one byte", "/w", "bad-padding"),
    ("padding left out after two bytes", "+/8", "bad-padding"),
    ("half the padding left out", "/w=", "bad-padding"),
    ("one = too many after one byte", "/w===", "bad-padding"),
    ("one = too many after two bytes", "+/8==", "bad-padding"),
    ("one = behind whole groups", "AAAA=", "bad-padding"),
    ("a group of = behind whole groups", "AAAA====", "bad-padding"),
    ("a group of = alone", "====", "bad-padding"),
    ("one = alone", "=", "bad-padding"),
    ("padding before the end", "/w==/w==", "bad-padding"),
    ("padding in front", "==/w", "bad-padding"),
    ("padding inside a group", "A=AA", "bad-padding"),
    ("one digit left over", "AAAAA", "bad-padding"),
    ("one digit left over, filled up with =", "AAAAA===", "bad-padding"),
    ("a space inside", "AA AA", "not-base64"),
    ("a tab inside", "AA\tAA", "not-base64"),
    ("a newline at the end", "AAAA\n", "not-base64"),
    ("a line break inside, as MIME puts it", "AAAA\r\nAAAA", "not-base64"),
    ("a space in front", " AAAA", "not-base64"),
    ("the URL-safe alphabet", "-_8=", "not-base64"),
    ("a letter beyond ASCII", "AAÄA", "not-base64"),
    ("a full-width letter", "AAA\uff21", "not-base64"),
    ("a zero-width space", "AAAA\u200b", "not-base64"),
    ("a byte-order mark in front", "\ufeffAAAA", "not-base64"),
    ("a NUL", "AAA\0", "not-base64"),
    ("a comma, as IMAP's alphabet has it", "AA,A", "not-base64"),
    ("padding percent-encoded", "/w%3D%3D", "not-base64"),
    ("in quotes", '"AAAA"', "not-base64"),
]
URL_SAFE = [
    ("nothing at all", "", "success"),
    ("one byte", "_w", "success"),
    ("two bytes", "-_8", "success"),
    ("three bytes", "AAAA", "success"),
    ("bits set after one byte", "_x", "non-canonical"),
    ("bits set after two bytes", "-_9", "non-canonical"),
    ("padding after one byte", "_w==", "bad-padding"),
    ("padding after two bytes", "-_8=", "bad-padding"),
    ("padding behind whole groups", "AAAA=", "bad-padding"),
    ("padding alone", "=", "bad-padding"),
    ("one digit alone", "A", "bad-padding"),
    ("one digit left over", "AAAAA", "bad-padding"),
    ("the standard alphabet", "+/8", "not-base64url"),
    ("a slash alone of the standard alphabet", "-/8", "not-base64url"),
    ("a newline at the end", "AAAA\n", "not-base64url"),
    ("a space in front", " AAAA", "not-base64url"),
    ("a dot, as it parts tokens", "AAAA.AAAA", "not-base64url"),
    ("a letter beyond ASCII", "AAÄA", "not-base64url"),
    ("percent-encoded", "%2DA", "not-base64url"),
]


def encodings() -> Iterator[Vector]:
    for kind, cases in (("base64", STANDARD), ("base64url", URL_SAFE)):
        for comment, text, reason in cases:
            filled = text + "=" * (-len(text) % 4)
            data = (
                base64.b64decode(filled, altchars=b"-_" if kind == "base64url" else None)
                if reason == "success"
                else b""
            )
            expect = reason if reason == "success" else f"encoding {reason}"
            yield vector(kind, comment, expect, text, {}, {"bytes": data.hex()})


def fragments() -> Iterator[Vector]:
    key = noise("fragment key", 32)
    body = b64url(key)
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    sibling = digits[digits.index(body[-1]) ^ 1]
    cases = [
        ("bare", "1" + body, "success"),
        ("with its sign", "#1" + body, "success"),
        ("nothing at all", "", "missing-key"),
        ("the sign alone", "#", "missing-key"),
        ("two signs", "##1" + body, "malformed-key"),
        ("a sign behind", "1" + body + "#", "malformed-key"),
        ("the version alone", "1", "malformed-key"),
        ("version 0", "0" + body, "malformed-key"),
        ("version 2", "2" + body, "malformed-key"),
        ("a version of two digits", "11" + body, "malformed-key"),
        ("no version", body, "malformed-key"),
        ("a small l for the version", "l" + body, "malformed-key"),
        ("named, as a parameter", "k=1" + body, "malformed-key"),
        ("a version and a key, parted", "1." + body, "malformed-key"),
        ("padding", "1" + body + "=", "malformed-key"),
        ("the last digit lost", "1" + body[:-1], "malformed-key"),
        ("a digit too many", "1" + body + "B", "malformed-key"),
        ("31 bytes", "1" + b64url(key[:31]), "malformed-key"),
        ("33 bytes", "1" + b64url(key + b"\0"), "malformed-key"),
        ("a bit set after the last byte", "1" + body[:-1] + sibling, "malformed-key"),
        ("the standard alphabet", "1" + b64(b"\xff" * 32).rstrip("="), "malformed-key"),
        ("the key in hexadecimal", "1" + key.hex(), "malformed-key"),
        ("a space in front", " 1" + body, "malformed-key"),
        ("a space behind", "1" + body + " ", "malformed-key"),
        ("a newline behind", "1" + body + "\n", "malformed-key"),
        ("a full stop behind, as a sentence puts it", "1" + body + ".", "malformed-key"),
        ("a full-width version", "\uff11" + body, "malformed-key"),
        ("percent-encoded", "%31" + body, "malformed-key"),
        ("a whole link", "https://s.example/c#1" + body, "malformed-key"),
    ]
    for comment, text, reason in cases:
        expect = reason if reason == "success" else f"fragment {reason}"
        yield vector("fragment", comment, expect, text, {}, {"content key": key.hex()})
