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

_SEARCH_WINDOW: Final = timedelta(hours=24)
"""How far back a comment is looked for: nothing older is ever sent again."""


class Thread(Protocol):
    """Where comments are made: an issue, or a request to merge."""

    def find(self, body: str) -> str | None:
        """The id of a comment of the last day with exactly this text; None where there is none."""
        ...

    def create(self, body: str) -> str:
        """Make one. Its id."""
        ...

    def has_text(self, comment: str, body: str) -> bool:
        """Whether that comment has this text."""
        ...


def deliver(thread: Thread, body: str) -> Delivery:
    """Make a comment, unless it is there: its text is its own mark. Raises UnknownOutcomeError where it may still turn
    up."""
    existing = thread.find(body)
    if existing is not None:
        return Delivery(existing, confirmed=True)
    try:
        created = thread.create(body)
    except UnknownOutcomeError as error:
        outcome_error = error
    else:
        return Delivery(created, confirmed=_or_none(lambda: thread.has_text(created, body)) is True)
    existing = _or_none(lambda: thread.find(body))
    if existing is None:
        raise outcome_error
    return Delivery(existing, confirmed=True)


def search_start() -> str:
    """The time since which comments are looked for, as both systems write it."""
    return (datetime.now(UTC) - _SEARCH_WINDOW).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_pages(read: Callable[[int], Reply]) -> Iterator[list[dict[str, Any]]]:
    """The rows of each page, the first being 1, until one is not full."""
    for page in range(1, PAGES + 1):
        identifier = read(page).json
        rows = identifier if isinstance(identifier, list) else []
        yield [row for row in rows if isinstance(row, dict)]
        if len(rows) < PAGE:
            return


def comment_id(reply: Reply) -> str:
    """The number of what was made. UnknownOutcomeError where the answer has none."""
    identifier = reply.member("id")
    if not isinstance(identifier, int):
        raise UnknownOutcomeError(f"the server is not {reply.system}", remedy=CHECK_FIRST)
    return str(identifier)


def _or_none(request: Callable[[], T]) -> T | None:
    """What was read; None where reading failed: that changes nothing of what was written."""
    try:
        return request()
    except PluginError:
        return None
