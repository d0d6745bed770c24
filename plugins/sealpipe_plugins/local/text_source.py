"""`text:VALUE`: the text itself, for what is no secret: a user name, an address."""

from __future__ import annotations

from sealpipe.plugin import Document, Locator, Source


class TextSource(Source):
    """The reference's own body."""

    def fetch(self, locator: Locator) -> Document:
        """The body, as what is no secret."""
        return Document(locator.body, secret=False)
