"""`gen:password`, `gen:passphrase`, `gen:pin`, `gen:hex`, `gen:uuid`, `gen:ssh`: new secrets, drawn
here.

A secret drawn here exists only in the share. Its document states the bits of entropy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from sealpipe.plugin import Document, Health, Locator, ReferenceValueError, Source
from sealpipe_plugins.generate import drawing
from sealpipe_plugins.generate.drawing import WORD_COUNT, read_words

MIN_BITS: Final = 64
"""Minimum bits of entropy, except for a PIN, which is protected by a limit on attempts."""

Bounds = tuple[int, int, int]
"""Default, minimum and maximum of a number."""

LENGTH: Final[Bounds] = (24, 1, 1024)
WORDS: Final[Bounds] = (6, 1, 64)
DIGITS: Final[Bounds] = (6, 4, 64)
BYTES: Final[Bounds] = (32, 8, 4096)
MAX_SEPARATOR, MAX_COMMENT = 16, 200


class GenSource(Source):
    """New secrets.

    Each reference gets a separate one, but references with the same `name=` share one.
    """

    def fetch(self, locator: Locator) -> Document:
        """Draw a new value. ReferenceValueError names an invalid parameter and its valid values."""
        kind = KINDS.get(locator.body)
        if kind is None:
            raise ReferenceValueError(
                "gen: has no such kind of secret",
                locator="gen:",
                remedy="write gen: and one of " + ", ".join(KINDS),
            )
        for name, _ in locator.params:
            if name not in kind.params:
                raise _parameter_error(
                    locator,
                    f"takes no {name}=",
                    f"it takes {' and '.join(f'{p}=' for p in kind.params)}",
                )
        return kind.make(locator)

    def check(self) -> Health:
        """Check that the word list is complete."""
        try:
            return Health(ok=True, detail=f"{len(read_words())} words for passphrases")
        except (OSError, ValueError):
            return Health(ok=False, detail="the word list for passphrases is missing or incomplete")


_ALPHABETS: Final = {"0": drawing.PLAIN, "1": drawing.WITH_SYMBOLS, "all": drawing.ALL_SYMBOLS}


def _make_password(locator: Locator) -> Document:
    kinds = _ALPHABETS.get(locator.param("symbols", "1") or "")
    if kinds is None:
        raise _parameter_error(
            locator, "has an invalid symbols=", "symbols= is 0 (none), 1 (+-.:=_) or all"
        )
    length = _parse_number(locator, "length", LENGTH)
    choices = drawing.count_passwords(length, kinds)
    _refuse_weak(locator, "length", length, lambda minimum: drawing.count_passwords(minimum, kinds))
    remark = f"{length} characters of {sum(map(len, kinds))}, {drawing.entropy_bits(choices)} bits"
    return Document(drawing.draw_password(length, kinds), remark=remark)


def _make_passphrase(locator: Locator) -> Document:
    count = _parse_number(locator, "words", WORDS)
    separator = _parse_text(locator, "separator", "-", MAX_SEPARATOR)
    _refuse_weak(locator, "words", count, lambda minimum: WORD_COUNT**minimum)
    remark = f"{count} words of {WORD_COUNT}, {drawing.entropy_bits(WORD_COUNT**count)} bits"
    return Document(drawing.draw_passphrase(count, separator, read_words()), remark=remark)


def _make_pin(locator: Locator) -> Document:
    length = _parse_number(locator, "length", DIGITS)
    remark = f"{length} digits, {drawing.entropy_bits(10**length)} bits"
    return Document(drawing.draw_pin(length), remark=remark)


def _make_hex(locator: Locator) -> Document:
    size = _parse_number(locator, "bytes", BYTES)
    return Document(drawing.draw_hex(size), remark=f"{size} bytes, {size * 8} bits")


def _make_uuid(locator: Locator) -> Document:  # noqa: ARG001 - it has no parameters
    return Document(drawing.draw_uuid(), remark=f"version 4, {drawing.UUID_BITS} bits")


def _make_ssh(locator: Locator) -> Document:
    comment = _parse_text(locator, "comment", "", MAX_COMMENT)
    pair = drawing.draw_ssh_key_pair(comment)
    return Document(
        pair,
        public=drawing.PUBLIC_PARTS,
        remark=f"ed25519 (128 bits of strength), {pair['fingerprint']}",
    )


class SecretKind(NamedTuple):
    """A kind of secret: its generator and its parameters."""

    make: Callable[[Locator], Document]
    params: tuple[str, ...]


KINDS: Final[Mapping[str, SecretKind]] = {
    "password": SecretKind(_make_password, ("length", "symbols", "name")),
    "passphrase": SecretKind(_make_passphrase, ("words", "separator", "name")),
    "pin": SecretKind(_make_pin, ("length", "name")),
    "hex": SecretKind(_make_hex, ("bytes", "name")),
    "uuid": SecretKind(_make_uuid, ("name",)),
    "ssh": SecretKind(_make_ssh, ("comment", "name")),
}


def _parse_number(locator: Locator, name: str, bounds: Bounds) -> int:
    default, minimum, maximum = bounds
    text = locator.param(name, str(default)) or ""
    if not re.fullmatch(r"[0-9]{1,6}", text, re.ASCII) or not minimum <= int(text) <= maximum:
        raise _parameter_error(
            locator, f"has an invalid {name}=", f"{name}= is a whole number, {minimum} to {maximum}"
        )
    return int(text)


def _parse_text(locator: Locator, name: str, default: str, max_length: int) -> str:
    text = locator.param(name, default) or ""
    if len(text) > max_length or not text.isprintable():
        raise _parameter_error(
            locator, f"has an invalid {name}=", f"{name}= is at most {max_length} characters"
        )
    return text


def _refuse_weak(locator: Locator, name: str, number: int, choices: Callable[[int], int]) -> None:
    """Refuse a secret with too little entropy, and name a number that has enough."""
    if drawing.entropy_bits(choices(number)) >= MIN_BITS:
        return
    enough = next(
        candidate
        for candidate in range(number, LENGTH[2])
        if drawing.entropy_bits(choices(candidate)) >= MIN_BITS
    )
    bits = drawing.entropy_bits(choices(number))
    raise _parameter_error(
        locator,
        f"would have {bits} bits: too few to be safe",
        f"{name}={enough} or more is safe ({MIN_BITS} bits)",
    )


def _parameter_error(locator: Locator, what: str, remedy: str) -> ReferenceValueError:
    return ReferenceValueError(f"gen:{locator.body} {what}", locator=locator.text, remedy=remedy)
