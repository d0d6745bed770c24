"""Draws what a terminal showed: the same bytes for the same lines, whatever codes, keys and times a
run has.

An own drawing in SVG, because a picture stands in pages: its text is text, it asks no other host
for a font, and it says in words what it shows. Nothing moves: a reader sees at once how it ends,
and goes at their own pace.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from html import escape
from typing import NamedTuple

_NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
"""When every recording begins."""
_VARYING = re.compile(
    r"(?P<key>(?<=#1)[\w-]{43})|(?P<id>\b[0-9a-f]{12}\b)|(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)"
)
"""What varies, beside what a recording knows."""
COLUMNS = 100
_WIDE, _HIGH, _EDGE = 8.4, 20, 16
_STYLE = """\
rect { fill: #12151b; stroke: #76808e; }
text { font: 14px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", \
"Liberation Mono", monospace; \
fill: #e9ebee; white-space: pre; }
.prompt { fill: #7fd1c7; }
.typed { fill: #ffffff; font-weight: bold; }
.said { fill: #a7b0bc; }"""


class Shown(NamedTuple):
    """A command as it was typed, and the lines that the terminal showed below it."""

    command: str
    lines: list[str]


def settle(
    title: str, shown: Sequence[Shown], exact: Mapping[str, str], began: datetime
) -> list[Shown]:
    """Give what varies made-up values of the same form, for each title others.

    `exact` are values with their kinds.

    Times are whole minutes since `began`.
    """
    made: dict[str, str] = {}

    def make(found: re.Match[str]) -> str:
        kind = found.lastgroup or exact[found[0]]
        if kind == "time":
            return _shift(found[0], began)
        if kind == "port":
            return "8765"
        return made.setdefault(found[0], _make_up(kind, f"{title} {len(made)}", len(found[0])))

    known = "|".join(map(re.escape, exact))
    varying = re.compile(rf"(?<![\w-])(?:{known})(?![\w-])|{_VARYING.pattern}")
    return [Shown(command, [varying.sub(make, line) for line in lines]) for command, lines in shown]


def _shift(time: str, began: datetime) -> str:
    minutes = (datetime.fromisoformat(time) - began) // timedelta(minutes=1)
    return f"{_NOON + timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}"


def _make_up(kind: str, seed: str, length: int) -> str:
    digest = hashlib.sha256(f"{kind} {seed}".encode())
    text = digest.hexdigest() if kind == "id" else base64.b64encode(digest.digest(), b"Zz").decode()
    return text[:length]


def draw(title: str, alternative: str, shown: Sequence[Shown]) -> str:
    """Return the SVG. Lines are folded where the terminal ends."""
    rows = list(_fold([line for command, lines in shown for line in (f"$ {command}", *lines)]))
    width, tall = COLUMNS * _WIDE + 2 * _EDGE, len(rows) * _HIGH + 2 * _EDGE
    size = f'viewBox="0 0 {width:g} {tall}" width="{width:g}" height="{tall}"'
    named = 'role="img" aria-labelledby="title alternative"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} {named} xml:space="preserve">',
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="alternative">{escape(alternative)}</desc>',
            f"<style>\n{_STYLE}\n</style>",
            f'<rect x="0.5" y="0.5" width="{width - 1:g}" height="{tall - 1}" rx="8"/>',
            *(
                _text(row, at * _HIGH + _EDGE - 5, is_typed=is_typed)
                for at, (row, is_typed) in enumerate(rows, 1)
            ),
            "</svg>\n",
        ]
    )


def _fold(lines: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield rows of the screen, and whether each begins what was typed."""
    for line in lines:
        whole = line.expandtabs()
        for start in range(0, max(1, len(whole)), COLUMNS):
            yield whole[start : start + COLUMNS], start == 0 and line.startswith("$ ")


def _text(row: str, bottom: int, *, is_typed: bool) -> str:
    """Return one row. It is as wide as its characters, whatever font there is."""
    content = escape(row, quote=False)
    if is_typed:
        kind = "said" if row.startswith("$ #") else "typed"
        content = f'<tspan class="prompt">$</tspan> <tspan class="{kind}">{content[2:]}</tspan>'
    length = f' textLength="{len(row) * _WIDE:g}" lengthAdjust="spacingAndGlyphs"' if row else ""
    return f'<text x="{_EDGE}" y="{bottom}"{length}>{content}</text>'
