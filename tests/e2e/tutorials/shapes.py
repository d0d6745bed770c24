"""What varies from run to run on a tutorial: the page shows a plausible value, and the test
compares its shape.

A link, a code or a key is remembered: where the page shows the same value again, in a command, a
file or a line, the reader has the one that was printed, and so has the test. Times, durations and
ports are not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORD = "[A-Za-z0-9_-]"
_MIXED = rf"(?<!{_WORD})(?={_WORD}*[0-9_])(?={_WORD}*[A-Z]){_WORD}{{12}}(?!{_WORD})"
REMEMBERED = {
    "link": (rf"http://127\.0\.0\.1:\d+/s/{_WORD}{{12}}#1{_WORD}{{43}}",) * 2,
    "collect link": (rf"http://127\.0\.0\.1:\d+/s/r/{_WORD}{{12}}",) * 2,
    # A code that could not be part of a name in a store is given as a hash.
    "marker": (
        rf"{_WORD}{{12}}\.[0-9a-f]{{12}}",
        rf"(?:{_WORD}{{12}}\.[0-9a-f]{{12}}|x\.[0-9a-f]{{32}})",
    ),
    # Few words of twelve characters have a capital letter and a digit, and nearly every code has.
    "code": (_MIXED, rf"{_WORD}{{12}}"),
}
"""For each kind, how the page writes it and what may stand there in fact."""
LOOSE = {
    "time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
    "minute": r"\d{4}-\d\d-\d\d \d\d:\d\d UTC",
    "seconds": r"\d+\.\d\d?s\b",
    "blanks": r" {8,}",
}
"""What is not remembered: written and found in the same shape."""
_SHOWN = re.compile(
    "|".join(f"(?P<{name.replace(' ', '_')}>{shown})" for name, (shown, _) in REMEMBERED.items())
    + "".join(f"|(?P<{name}>{shape})" for name, shape in LOOSE.items())
)


class Shapes:
    """What a page shows, and what stood there in fact."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def filled(self, text: str) -> str:
        """A text of the page with the values that were printed in place of those that it shows."""
        return _SHOWN.sub(lambda found: self._known.get(found[0], found[0]), text)

    def match(self, shown: Sequence[str], came: str, *, in_any_order: bool = False) -> bool:
        """Whether a command printed what the page shows. Remembers the values.

        The line `...` stands for any lines. A page that shows two values for what was one is wrong:
        its reader looks for the difference.
        """
        lines = came.splitlines()
        if in_any_order:
            shown, lines = sorted(shown, key=_blank), sorted(lines, key=_blank)
        groups: dict[str, str] = {}
        pattern = "".join(
            r"(?:[^\n]*\n)*?" if line == "..." else self._pattern(line, groups) + "\n"
            for line in shown
        )
        found = re.fullmatch(pattern, "".join(f"{line}\n" for line in lines))
        if found is None:
            return False
        known = self._known | {value: found[name] for value, name in groups.items()}
        if len(set(known.values())) < len(known):
            return False
        self._known = known
        return True

    def _pattern(self, line: str, groups: dict[str, str]) -> str:
        """The regular expression of a line; `groups` are the new values of the page, and the names
        of their groups.
        """
        at, pattern = 0, ""
        for found in _SHOWN.finditer(line):
            value, kind = found[0], str(found.lastgroup).replace("_", " ")
            pattern += re.escape(line[at : found.start()])
            at = found.end()
            if kind in LOOSE:
                pattern += f"(?:{LOOSE[kind]})"
            elif value in self._known:
                pattern += re.escape(self._known[value])
            elif value in groups:
                pattern += f"(?P={groups[value]})"
            else:
                groups[value] = f"v{len(groups)}"
                pattern += f"(?P<{groups[value]}>{REMEMBERED[kind][1]})"
        return pattern + re.escape(line[at:])


def _blank(line: str) -> str:
    """A line without what varies, to sort by."""
    return _SHOWN.sub(lambda found: str(found.lastgroup), line)
