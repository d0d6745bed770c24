"""The characters of references: which are allowed, how others are escaped; and templates with `{placeholders}`.

No error here repeats its input, which may be a secret that was pasted where a reference belongs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple, NoReturn

from sealpipe.errors import ReferenceSyntaxError, UsageError

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


_ADDRESS = re.compile(r"://|(?<=:)https?:", re.IGNORECASE)
"""Where an address begins, also one with a slash too few."""
_PARTS = re.compile(r"([/\\]*)([^/\\?#]*)([^?#]*)([?#]?)(.*)", re.DOTALL)
_TOKEN = re.compile(r"(?<=[/\\])(?=[^/\\]*[0-9A-Z])[^/\\]{16,}")
"""A segment of a path that may be a credential: long, and with a digit or a capital letter."""


def redact_address(target: str) -> str:
    """A target as messages, lists and the audit log show it: an address without what may be a credential.

    That is a user, a query, a fragment and long segments of the path that have a digit or a capital letter.
    """
    start = _ADDRESS.search(target)
    parts = None if start is None else _PARTS.fullmatch(target, start.end())
    if start is None or parts is None:
        return target
    slashes, host, path, mark, rest = parts.groups()
    user, at, host_name = host.rpartition("@")
    shown = f"***@{host_name}" if at and user else host
    return f"{target[: start.end()]}{slashes}{shown}{_TOKEN.sub('***', path)}{mark}{'***' if rest else ''}"


def refuse(what: str, remedy: str = "") -> NoReturn:
    """Raise ReferenceSyntaxError."""
    raise ReferenceSyntaxError(what, remedy=remedy)


def check_characters(text: str, part: str) -> str:
    """Return the text. Raises ReferenceSyntaxError if it contains a control character or a lone surrogate."""
    if text.isprintable():
        return text
    for character in text:
        code = ord(character)
        if 0xD800 <= code <= 0xDFFF:  # a byte of an argument that is not UTF-8
            refuse(f"{part} is not UTF-8 text", "write it in UTF-8")
        if code < 0x20 or 0x7F <= code < 0xA0:  # it would end a line, or control a terminal
            refuse(
                f"there is a control character (U+{code:04X}) in {part}",
                "take it out: a line end that was copied along is the usual cause",
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
                f"write % itself as %25; known here are {codes}, everything else is written as it is",
            )
    return "".join(decoded)


def quote(text: str) -> str:
    """Put the text in quotes, with `\\"` and `\\\\`."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def read_quoted(text: str, start: int, part: str) -> tuple[str, int]:
    """Read the text in the quotes that open at `start`; return it and the position after the closing quote."""
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
                refuse(f"there is a lone \\ between the quotes of {part}", 'write \\\\ for \\ and \\" for "')
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
        """Fill in the placeholders. A value stays as it is, with its braces."""
        return "".join(values[piece] if number % 2 else piece for number, piece in enumerate(self.pieces))


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
