"""A fake of the GitHub runner's masker, written from CI-FACTS and the runner's published source (SecretMasker,
ValueEncoders, HostContext): what it hides, and what it does not. Where the two differ it hides less."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from urllib.parse import quote
from xml.sax.saxutils import escape


class Masker:
    """Every value that is to be hidden, in every form in which the runner knows it again."""

    def __init__(self) -> None:
        self.values: list[str] = []
        self._forms: dict[str, None] = {}

    def add(self, value: str) -> None:
        """Hide a value: whole, and each of its lines, trimmed."""
        if not value.strip():
            return
        self.values.append(value)
        for part in [value, *(line.strip() for line in re.split(r"\r\n|[\r\n]", value))]:
            if part:
                self._forms |= dict.fromkeys(form for form in _forms(part) if form)

    def __call__(self, text: str) -> str:
        """The text with every form hidden; what overlaps or touches is hidden as one."""
        spans = sorted((at, at + len(form)) for form in self._forms for at in _places(text, form))
        out, end = [], 0
        for start, stop in spans:
            if start > end or not out:
                out += [text[end:start], "***"]
                end = stop
            else:
                end = max(end, stop)
        return "".join([*out, text[end:]])


def _forms(value: str) -> Iterator[str]:
    data = value.encode()
    yield value
    for shift in range(min(3, len(data))):  # the same bytes behind 0, 2 or 1 others
        yield base64.b64encode(data[shift:]).decode()
    yield value.replace("'", "''")
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield quote(value, safe="")
    yield escape(value, {'"': "&quot;", "'": "&apos;"})
    if len(value) > 8 and value.startswith('"') and value.endswith('"'):
        yield value[1:-1]


def _places(text: str, form: str) -> Iterator[int]:
    at = text.find(form)
    while at >= 0:
        yield at
        at = text.find(form, at + 1)
