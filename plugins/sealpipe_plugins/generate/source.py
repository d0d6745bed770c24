"""`gen:password`, `gen:passphrase`, `gen:pin`, `gen:hex`, `gen:uuid`, `gen:ssh`: new secrets, drawn here.

What is drawn exists in the share and nowhere else. Its document says how many bits of entropy it has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from sealpipe.plugin import Document, Health, Locator, ReferenceValueError, Source
from sealpipe_plugins.generate import drawing
from sealpipe_plugins.generate.drawing import COUNT, words

WEAK: Final = 64
"""Bits of entropy that a secret has at least. A PIN is short by its nature: a lock guards it, not its length."""

Bounds = tuple[int, int, int]
"""The default of a number, the least and the most."""

LENGTH: Final[Bounds] = (24, 1, 1024)
WORDS: Final[Bounds] = (6, 1, 64)
DIGITS: Final[Bounds] = (6, 4, 64)
BYTES: Final[Bounds] = (32, 8, 4096)
LONGEST_SEPARATOR, LONGEST_COMMENT = 16, 200


class GenSource(Source):
    """New secrets. Each mention draws anew; `name=` makes several mentions one."""

    def fetch(self, locator: Locator) -> Document:
        """A new value. ReferenceValueError names the parameter that is wrong, and what it takes."""
        kind = KINDS.get(locator.body)
        if kind is None:
            raise ReferenceValueError(
                "gen: makes no such thing", locator="gen:", remedy="write gen: and one of " + ", ".join(KINDS)
            )
        for name, _ in locator.params:
            if name not in kind.params:
                raise _wrong(locator, f"takes no {name}=", f"it takes {' and '.join(f'{p}=' for p in kind.params)}")
        return kind.make(locator)

    def check(self) -> Health:
        """Whether the word list is whole."""
        try:
            return Health(ok=True, detail=f"{len(words())} words for passphrases")
        except (OSError, ValueError):
            return Health(ok=False, detail="the word list for passphrases is missing or not whole")


_KINDS: Final = {"0": drawing.PLAIN, "1": drawing.WITH_SYMBOLS, "all": drawing.ALL_SYMBOLS}


def _password(locator: Locator) -> Document:
    kinds = _KINDS.get(locator.param("symbols", "1") or "")
    if kinds is None:
        raise _wrong(locator, "has a symbols= that it does not take", "symbols= is 0 (none), 1 (+-.:=_) or all")
    length = _number(locator, "length", LENGTH)
    choices = drawing.passwords(length, kinds)
    _not_weak(locator, "length", length, lambda least: drawing.passwords(least, kinds))
    remark = f"{length} characters of {sum(map(len, kinds))}, {drawing.bits(choices)} bits"
    return Document(drawing.password(length, kinds), remark=remark)


def _passphrase(locator: Locator) -> Document:
    count = _number(locator, "words", WORDS)
    separator = _text(locator, "separator", "-", LONGEST_SEPARATOR)
    _not_weak(locator, "words", count, lambda least: COUNT**least)
    remark = f"{count} words of {COUNT}, {drawing.bits(COUNT**count)} bits"
    return Document(drawing.passphrase(count, separator, words()), remark=remark)


def _pin(locator: Locator) -> Document:
    length = _number(locator, "length", DIGITS)
    remark = f"{length} digits, {drawing.bits(10**length)} bits"
    return Document(drawing.pin(length), remark=remark)


def _hex(locator: Locator) -> Document:
    size = _number(locator, "bytes", BYTES)
    return Document(drawing.hexadecimal(size), remark=f"{size} bytes, {size * 8} bits")


def _uuid(locator: Locator) -> Document:  # noqa: ARG001 - it has no parameters
    return Document(drawing.random_uuid(), remark=f"version 4, {drawing.UUID_BITS} bits")


def _ssh(locator: Locator) -> Document:
    comment = _text(locator, "comment", "", LONGEST_COMMENT)
    pair = drawing.ssh_key_pair(comment)
    return Document(pair, public=drawing.OPEN, remark=f"ed25519 (128 bits of strength), {pair['fingerprint']}")


class Kind(NamedTuple):
    """How one kind is made, and the parameters that it takes."""

    make: Callable[[Locator], Document]
    params: tuple[str, ...]


KINDS: Final[Mapping[str, Kind]] = {
    "password": Kind(_password, ("length", "symbols", "name")),
    "passphrase": Kind(_passphrase, ("words", "separator", "name")),
    "pin": Kind(_pin, ("length", "name")),
    "hex": Kind(_hex, ("bytes", "name")),
    "uuid": Kind(_uuid, ("name",)),
    "ssh": Kind(_ssh, ("comment", "name")),
}


def _number(locator: Locator, name: str, bounds: Bounds) -> int:
    default, least, most = bounds
    text = locator.param(name, str(default)) or ""
    if not re.fullmatch(r"[0-9]{1,6}", text, re.ASCII) or not least <= int(text) <= most:
        raise _wrong(locator, f"has a {name}= that it does not take", f"{name}= is a whole number, {least} to {most}")
    return int(text)


def _text(locator: Locator, name: str, default: str, longest: int) -> str:
    text = locator.param(name, default) or ""
    if len(text) > longest or not text.isprintable():
        raise _wrong(locator, f"has a {name}= that it does not take", f"{name}= is at most {longest} characters")
    return text


def _not_weak(locator: Locator, name: str, given: int, choices: Callable[[int], int]) -> None:
    """Refuse what could be guessed, and say what could not."""
    if drawing.bits(choices(given)) >= WEAK:
        return
    enough = next(number for number in range(given, LENGTH[2]) if drawing.bits(choices(number)) >= WEAK)
    has = drawing.bits(choices(given))
    raise _wrong(locator, f"would have {has} bits: too few to be safe", f"{name}={enough} is the least ({WEAK} bits)")


def _wrong(locator: Locator, what: str, remedy: str) -> ReferenceValueError:
    return ReferenceValueError(f"gen:{locator.body} {what}", locator=locator.text, remedy=remedy)
