"""Text with places to fill: `email:{to}`, or a message with `{link}` in it. What fills a place is never read again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from sealpipe.errors import UsageError
from sealpipe.reference.text import PARAMETER_NAME

_PART = re.compile(rf"\{{\{{|\}}\}}|\{{({PARAMETER_NAME})\}}|[{{}}]")


class Pattern(NamedTuple):
    """Literal text and the names of places by turns, beginning and ending with text."""

    pieces: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The places, in order; a place that is there twice is named twice."""
        return self.pieces[1::2]

    def fill(self, values: Mapping[str, str]) -> str:
        """The text. What is in a value stays as it is, braces too."""
        return "".join(values[piece] if number % 2 else piece for number, piece in enumerate(self.pieces))


def parse_pattern(text: str, part: str) -> Pattern:
    """`{name}` is a place, `{{` and `}}` are braces. UsageError, which calls the text `part`, for any other brace."""
    pieces, literal, end = [], "", 0
    for match in _PART.finditer(text):
        literal += text[end : match.start()]
        end = match.end()
        if match[1]:
            pieces += [literal, match[1]]
            literal = ""
        elif len(match[0]) == 2:
            literal += match[0][0]
        else:
            raise UsageError(
                f"there is a {match[0]} in {part} that belongs to no place",
                remedy="a place is written {name}, a brace itself {{ or }}",
            )
    return Pattern((*pieces, literal + text[end:]))
