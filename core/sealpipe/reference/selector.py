"""The selector of a reference: `#password`, `#cert.pem=tls.crt,tls.key`, `#/conn/0/pw`, `#*`."""

from __future__ import annotations

from dataclasses import dataclass

from sealpipe.reference.text import (
    SELECTOR_ESCAPES,
    check_characters,
    escape,
    quote,
    read_quoted,
    refuse,
    unescape,
)

_ALWAYS = '%,="'
_REMEDY = 'write #KEY, #LABEL=KEY, #/json/pointer or #*, joined by commas; a name with , or = in "quotes"'


@dataclass(frozen=True, slots=True)
class Everything:
    """`*`: every top-level key, one field each."""

    def __str__(self) -> str:
        return "*"


@dataclass(frozen=True, slots=True)
class Pointer:
    """A JSON pointer (RFC 6901) as its reference tokens, decoded; at least one."""

    tokens: tuple[str, ...]
    label: str | None = None

    def __post_init__(self) -> None:
        if not self.tokens:
            refuse("a JSON pointer to the whole document selects nothing", "leave the selector out")
        for token in self.tokens:
            check_characters(token, "the selector")
        _check_label(self.label)

    def __str__(self) -> str:
        tokens = (escape(t.replace("~", "~0").replace("/", "~1"), _ALWAYS) for t in self.tokens)
        return _print_label(self.label) + "".join("/" + token for token in tokens)


@dataclass(frozen=True, slots=True)
class Key:
    """One top-level key, literally (dots are plain). `label` is the field's new label, if given."""

    name: str
    label: str | None = None

    def __post_init__(self) -> None:
        check_characters(self.name, "the selector")
        _check_label(self.label)

    def __str__(self) -> str:
        return _print_label(self.label) + _print_name(self.name)


Item = Everything | Pointer | Key


def _check_label(label: str | None) -> None:
    if label is not None:
        check_characters(label, "a label of the selector")
        if not label:
            refuse("a label of the selector is empty", _REMEDY)


def _print_label(label: str | None) -> str:
    return "" if label is None else _print_name(label) + "="


def _print_name(name: str) -> str:
    if not name:
        return quote(name)
    leading = escape(name[0], _ALWAYS + "*/")
    return leading + escape(name[1:], _ALWAYS)


def print_selector(items: tuple[Item, ...]) -> str:
    """Return the text after `#`."""
    return ",".join(map(str, items))


def parse_selector(text: str) -> tuple[Item, ...]:
    """Parse the text after `#` into its items. Raises ReferenceSyntaxError."""
    check_characters(text, "the selector")
    items: list[Item] = []
    position = 0
    while True:
        part = f"item {len(items) + 1} of the selector"
        item, position = _read_item(text, position, part)
        items.append(item)
        if position == len(text):
            return tuple(items)
        position += 1  # the comma


def _read_item(text: str, position: int, part: str) -> tuple[Item, int]:
    label: str | None = None
    side, quoted, position = _read_side(text, position, part)
    if text[position : position + 1] == "=":
        label = side if quoted else _name(side, part)
        if not label:
            refuse(f"the label in {part} is empty", _REMEDY)
        side, quoted, position = _read_side(text, position + 1, part)
        if text[position : position + 1] == "=":
            refuse(f"there is a second = in {part}", "write = in a name as %3D, or the name in quotes")
    return _item(label, side, part, quoted=quoted), position


def _read_side(text: str, start: int, part: str) -> tuple[str, bool, int]:
    """Read up to the next `,` or `=`: the text, whether it was quoted, and the position of that character."""
    if text[start : start + 1] == '"':
        side, end = read_quoted(text, start, part)
        if end < len(text) and text[end] not in ",=":
            refuse(f"something follows the quotes in {part}", "put the whole name in the quotes")
        return side, True, end
    end = start
    while end < len(text) and text[end] not in ",=":
        end += 1
    side = text[start:end]
    if '"' in side:
        refuse(f'there is a " inside {part}', 'put the whole name in quotes, with \\" for "')
    return side, False, end


def _item(label: str | None, side: str, part: str, *, quoted: bool) -> Item:
    if quoted:
        return Key(side, label)
    if side == "*":
        if label is not None:
            refuse(f"{part} gives one label to every key", "write * alone, or name the keys one by one")
        return Everything()
    if side.startswith("/"):
        return Pointer(tuple(_token(token, part) for token in side[1:].split("/")), label)
    if not side:
        refuse(f"{part} is empty", _REMEDY)
    return Key(_name(side, part), label)


def _name(side: str, part: str) -> str:
    if side.startswith(("*", "/")):
        refuse(
            f"a name in {part} begins with * or /",
            "write a leading * as %2A, a leading / as %2F, and = inside a JSON pointer as %3D",
        )
    return unescape(side, SELECTOR_ESCAPES, part)


def _token(token: str, part: str) -> str:
    token = unescape(token, SELECTOR_ESCAPES, part)
    if "~" in token.replace("~0", "").replace("~1", ""):
        refuse(f"there is a lone ~ in the JSON pointer of {part}", "write ~ as ~0 and / in a key as ~1")
    return token.replace("~1", "/").replace("~0", "~")
