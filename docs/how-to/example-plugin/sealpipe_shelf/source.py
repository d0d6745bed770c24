"""shelf:NAME, an item on the shelf."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from sealpipe.plugin import Context, Document, Health, Locator, ReferenceValueError, Source

from sealpipe_shelf.shelf import Shelf


class ShelfSource(Source):
    """Read one item. The core selects keys, decodes, retries and caches."""

    concurrency = 4

    def __init__(self, settings: Any, context: Context) -> None:
        super().__init__(settings, context)
        self._shelf = Shelf(settings, context)

    def fetch(self, locator: Locator) -> Document:
        if locator.body in ("", ".", ".."):
            raise ReferenceValueError("the name is missing", remedy="write shelf:NAME")
        response = self._shelf.call("GET", "/things/" + quote(locator.body, safe=""))
        is_map = response.headers["content-type"] == "application/json"
        return Document(response.json() if is_map else response.content)

    def check(self) -> Health:
        self._shelf.call("GET", "/whoami")
        return Health(ok=True, detail=f"{self.settings.url} accepts the token")
