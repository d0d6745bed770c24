"""The text of references.

Allowed characters and escapes, templates with `{placeholders}`, and selectors.

No error here repeats its input, which may be a secret pasted in place of a reference.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from sealpipe.errors import ReferenceSyntaxError, UsageError
from sealpipe.parsing import begins_special
from sealpipe.wire.fields import TYPES

NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]+")
"""Two characters at least, so that `C:\\x` is not a reference."""

PARAMETER_NAME = r"[A-Za-z_][A-Za-z0-9_.-]{0,63}"
"""The name of a value that is given with --param: a pattern, compiled where it is needed."""

BODY_ESCAPES = "%?#"
PARAMETER_ESCAPES = "%?#&"
SELECTOR_ESCAPES = '%,=*/"?#'


def looks_like_reference(text: str) -> bool:
    """Return whether the text begins with NAME ":"."""
    match = NAME.match(text)
    return match is not None and text[match.end() : match.end() + 1] == ":"


def has_typed_label(text: str) -> bool:
    """Return whether the text begins with LABEL ":" TYPE "=", and goes on as a reference."""
    label, _, ref = text.partition("=")
    return label.rpartition(":")[2] in TYPES and looks_like_reference(ref)


def refuse(what: str, remedy: str = "") -> NoReturn:
    """Raise ReferenceSyntaxError."""
    raise ReferenceSyntaxError(what, remedy=remedy)


def check_characters(text: str, part: str) -> str:
    """Return the text.

    Raises ReferenceSyntaxError if it contains a control character or a lone surrogate.
    """
    if text.isprintable():
        return text
    for character in text:
        code = ord(character)
        if 0xD800 <= code <= 0xDFFF:  # a byte of an argument that is not UTF-8
            refuse(f"{part} is not UTF-8 text", "write it in UTF-8")
        if code < 0x20 or 0x7F <= code < 0xA0:  # a newline or a terminal control
            refuse(
                f"there is a control character (U+{code:04X}) in {part}",
                "remove it: usually a line break was copied along",
            )
    return text


def escape(text: str, characters: Collection[str]) -> str:
    """Write each of `characters` as `%` and two hexadecimal digits."""
    return "".join(f"%{ord(c):02X}" if c in characters else c for c in text)


def unescape(text: str, characters: str, part: str) -> str:
    """Undo `escape`. Any other use of `%` is an error: one text has one meaning everywhere."""
    if "%" not in text:
        return text
    first, *pieces = text.split("%")
    decoded = [first]
    for piece in pieces:
        for character in characters:
            if piece[:2].upper() == f"{ord(character):02X}":
                decoded.append(character + piece[2:])
                break
        else:
            codes = " ".join(f"%{ord(c):02X} ({c})" for c in characters)
            refuse(
                f"there is a % in {part} that is not an escape",
                (
                    f"write % itself as %25; known here are {codes}, everything else is "
                    "written as it is"
                ),
            )
    return "".join(decoded)


def quote(text: str) -> str:
    """Put the text in quotes, with `\\"` and `\\\\`."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def read_quoted(text: str, start: int, part: str) -> tuple[str, int]:
    """Read the text in the quotes that open at `start`.

    Return it and the position after the closing quote.
    """
    read: list[str] = []
    position = start + 1
    while position < len(text):
        character = text[position]
        if character == '"':
            return "".join(read), position + 1
        if character == "\\":
            position += 1
            character = text[position : position + 1]
            if character not in ('"', "\\"):
                refuse(
                    f"there is a lone \\ between the quotes of {part}",
                    'write \\\\ for \\ and \\" for "',
                )
        read.append(character)
        position += 1
    refuse(f"the quotes of {part} are not closed", 'end it with " (a " inside is written \\")')


_PART = rf"\{{\{{|\}}\}}|\{{({PARAMETER_NAME})\}}|[{{}}]"  # compiled where it is needed


class Template(NamedTuple):
    """Literal texts and names of placeholders in turn, beginning and ending with text."""

    pieces: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The placeholders, in order; a repeated placeholder is repeated here."""
        return self.pieces[1::2]

    def fill(self, values: Mapping[str, str]) -> str:
        """Fill in the placeholders. A value is inserted unchanged, including braces."""
        return "".join(
            values[piece] if number % 2 else piece for number, piece in enumerate(self.pieces)
        )

    def find_misfit(self, values: Mapping[str, str]) -> str | None:
        """Return the first placeholder whose value is not one plain name there.

        Without a value it is skipped.
        """
        before = ""
        for number, piece in enumerate(self.pieces):
            text = values.get(piece, "x") if number % 2 else piece
            if number % 2 and (not re.fullmatch(_PLAIN_NAME, text) or begins_special(before, text)):
                return piece
            before += text
        return None


PLAIN_NAME_RULE = (
    "it may have letters, digits and . _ ~ - only, and begin no part of a path with . ~ or -"
)
_PLAIN_NAME = r"(?!\.{1,2}$)[A-Za-z0-9._~-]+"  # compiled where it is needed


def parse_template(text: str, part: str) -> Template:
    """Parse a text with placeholders `{name}`; `{{` and `}}` are braces.

    UsageError, which calls the text `part`, for any other brace.
    """
    pieces, literal, end = [], "", 0
    for match in re.finditer(_PART, text):
        literal += text[end : match.start()]
        end = match.end()
        if match[1]:
            pieces += [literal, match[1]]
            literal = ""
        elif len(match[0]) == 2:
            literal += match[0][0]
        else:
            raise UsageError(
                f"there is a {match[0]} in {part} that is not part of a placeholder",
                remedy="write a placeholder as {name}, and a brace as {{ or }}",
            )
    return Template((*pieces, literal + text[end:]))


_ALWAYS = '%,="'
_REMEDY = (
    'write #KEY, #LABEL=KEY, #/json/pointer or #*, joined by commas; a name with , or = in "quotes"'
)


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
    """One top-level key, literally (a dot is an ordinary character).

    `label` is the field's new label, if given.
    """

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
        position += 1  # skips the comma


def _read_item(text: str, position: int, part: str) -> tuple[Item, int]:
    label: str | None = None
    side, quoted, position = _read_side(text, position, part)
    if text[position : position + 1] == "=":
        label = side if quoted else _name(side, part)
        if not label:
            refuse(f"the label in {part} is empty", _REMEDY)
        side, quoted, position = _read_side(text, position + 1, part)
        if text[position : position + 1] == "=":
            refuse(
                f"there is a second = in {part}", "write = in a name as %3D, or the name in quotes"
            )
    return _item(label, side, part, quoted=quoted), position


def _read_side(text: str, start: int, part: str) -> tuple[str, bool, int]:
    """Read up to the next `,` or `=`.

    The text, whether it was quoted, and the position of that character.
    """
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
            refuse(
                f"{part} gives one label to every key", "write * alone, or name the keys one by one"
            )
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
        refuse(
            f"there is a lone ~ in the JSON pointer of {part}", "write ~ as ~0 and / in a key as ~1"
        )
    return token.replace("~1", "/").replace("~0", "~")
