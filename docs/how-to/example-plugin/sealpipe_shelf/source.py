"""shelf:NAME, what is on the shelf under that name."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from sealpipe.plugin import Context, Document, Health, Locator, ReferenceValueError, Source

from sealpipe_shelf.shelf import Shelf


class ShelfSource(Source):
    """Reads one thing. The core does the rest: it selects keys, decodes, retries, and reads nothing twice."""

    concurrency = 4

    def __init__(self, settings: Any, context: Context) -> None:
        super().__init__(settings, context)
        self._shelf = Shelf(settings, context)

    def fetch(self, locator: Locator) -> Document:
        if locator.body in ("", ".", ".."):
            raise ReferenceValueError("a thing on the shelf has a name", remedy="write shelf:NAME")
        answer = self._shelf.call("GET", "/things/" + quote(locator.body, safe=""))
        is_map = answer.headers["content-type"] == "application/json"
        return Document(answer.json() if is_map else answer.content)

    def check(self) -> Health:
        self._shelf.call("GET", "/whoami")
        return Health(ok=True, detail=f"{self.settings.url} takes the token")
