"""Markers at the end of a text that people write, too: `their text [sealpipe: MARKER MARKER]`."""

from __future__ import annotations

import re
from typing import Final

_MARKED: Final = re.compile(
    r"(?P<own>.*?) ?\[sealpipe:(?P<marks>(?: [A-Za-z0-9._/-]{1,200})+)\]", re.DOTALL
)


def split_markers(text: str) -> tuple[str, list[str]]:
    """Return the text without its markers, and the markers, oldest first."""
    match = _MARKED.fullmatch(text)
    return (text, []) if match is None else (match["own"], match["marks"].split())


def append_marker(text: str, marker: str, limit: int) -> str:
    """Append a marker and drop the oldest ones if necessary.

    Unchanged if it does not fit into `limit` characters.
    """
    own_text, markers = split_markers(text)
    markers = [*(each for each in markers if each != marker), marker]
    while markers:
        marked = f"{own_text} [sealpipe: {' '.join(markers)}]".lstrip(" ")
        if len(marked) <= limit:
            return marked
        markers = markers[1:]
    return text
