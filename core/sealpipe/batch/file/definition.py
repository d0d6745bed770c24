"""The definition of a batch: its file and its rows as values, all of it checked (`reading.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from sealpipe.batch.file.document import Document
from sealpipe.batch.file.options import Option, Options
from sealpipe.batch.file.rows import Row
from sealpipe.delivery.recipients import DeliveryPlan

Kind = Literal["request", "share"]


@dataclass(frozen=True, slots=True)
class Reminders:
    """When to remind.

    `after` each of these times since the link was sent, in order, and once before the expiry.

    A row of requests is reminded while nobody has submitted, one of shares while nobody has opened
    it. `template` is the message's text, with {link}; None for the built-in one.
    """

    after: tuple[timedelta, ...]
    before_expiry: timedelta | None
    template: Option | None


@dataclass(frozen=True, slots=True)
class Reissue:
    """When to create a new share of the same sources, and how often at most."""

    when: Literal["expired-unopened"]
    times: int


@dataclass(frozen=True, slots=True)
class Notification:
    """Who gets what changed in a run, and whether with names of rows."""

    delivery: DeliveryPlan
    rows: bool


@dataclass(frozen=True, slots=True)
class BatchDefinition:
    """A batch. `options` and `collect` still contain columns: `render_row` fills in a row."""

    name: str
    kind: Kind
    key: str
    """The column that identifies a row."""
    columns: tuple[str, ...] | None
    """The columns of the rows; None if they were not read."""
    options: Options
    """[request] or [share]."""
    collect: Options | None
    remind: Reminders | None
    reissue: Reissue | None
    notify: Notification | None
    rows: tuple[Row, ...]
    document: Document
    """The file that it was read from."""

    def dump(self) -> dict[str, Any]:
        """Return the definition without its rows as JSON members, for `load_definition`."""
        members = {
            name: value
            for name, value in self.document.members.items()
            if name not in ("rows", "row")
        }
        return {"file": self.document.file, "members": members, "texts": self.document.texts}

    def dump_options(self) -> dict[str, Any]:
        """Return [request] or [share] alone as JSON members, for `load_options`."""
        members = self.document.members[self.kind]
        texts = {
            name: text
            for name, text in self.document.texts.items()
            if name == members.get("message-template")
        }
        return {"members": members, "texts": texts}
