"""shelf:PERSON, a note to the owner of a shelf."""

from __future__ import annotations

import re
from typing import Any

from sealpipe.plugin import Channel, Context, Delivery, Message, ReferenceValueError

from sealpipe_shelf.shelf import Shelf


class ShelfChannel(Channel):
    """Send a message as a note."""

    def __init__(self, settings: Any, context: Context) -> None:
        super().__init__(settings, context)
        self._shelf = Shelf(settings, context)

    def validate(self, to: str) -> None:
        # It may come from outside: exactly one person, and no character with a meaning in a path.
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,30}", to):
            raise ReferenceValueError(
                "not a valid person", remedy="write shelf:PERSON, in lower case"
            )

    def send(self, message: Message, to: str) -> Delivery:
        note = {"about": message.subject, "text": message.text.reveal()}
        return Delivery(id=self._shelf.call("POST", f"/notes/{to}", note).text)
