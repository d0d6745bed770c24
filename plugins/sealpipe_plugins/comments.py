"""Comments that can be read back: made once, even where an answer was lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol, TypeVar

from sealpipe.plugin import Delivery, PluginError, UnknownOutcomeError
from sealpipe_plugins.http_api import Reply
from sealpipe_plugins.http_errors import CHECK_FIRST

T = TypeVar("T")

PAGE: Final = 100
"""How many comments are read at a time: as many as either system gives."""

PAGES: Final = 30
"""How often, at the most."""

_DAY: Final = timedelta(hours=24)
"""How far back a comment is looked for: nothing older is ever sent again."""


class Place(Protocol):
    """Where comments are made: an issue, or a request to merge."""

    def find(self, body: str) -> str | None:
        """The id of a comment of the last day with exactly this text; None where there is none."""
        ...

    def make(self, body: str) -> str:
        """Make one. Its id."""
        ...

    def reads(self, comment: str, body: str) -> bool:
        """Whether that comment has this text."""
        ...


def deliver(place: Place, body: str) -> Delivery:
    """Make a comment, unless it is there: its text is its own mark. Raises UnknownOutcomeError where it may still turn
    up."""
    there = place.find(body)
    if there is not None:
        return Delivery(there, confirmed=True)
    try:
        made = place.make(body)
    except UnknownOutcomeError as error:
        unclear = error
    else:
        return Delivery(made, confirmed=_quietly(lambda: place.reads(made, body)) is True)
    there = _quietly(lambda: place.find(body))
    if there is None:
        raise unclear
    return Delivery(there, confirmed=True)


def a_day_ago() -> str:
    """The time since which comments are looked for, as both systems write it."""
    return (datetime.now(UTC) - _DAY).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_pages(read: Callable[[int], Reply]) -> Iterator[list[dict[str, Any]]]:
    """The rows of each page, the first being 1, until one is not full."""
    for page in range(1, PAGES + 1):
        found = read(page).json
        rows = found if isinstance(found, list) else []
        yield [row for row in rows if isinstance(row, dict)]
        if len(rows) < PAGE:
            return


def number(reply: Reply) -> str:
    """The number of what was made. UnknownOutcomeError where the answer has none."""
    found = reply.member("id")
    if not isinstance(found, int):
        raise UnknownOutcomeError(f"what answers in {reply.system}'s place is not {reply.system}", remedy=CHECK_FIRST)
    return str(found)


def _quietly(ask: Callable[[], T]) -> T | None:
    """What was read; None where reading failed: that changes nothing of what was written."""
    try:
        return ask()
    except PluginError:
        return None
