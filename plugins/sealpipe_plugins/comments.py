"""Comments on issues: created once, even if a response is lost, because they can be read back."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol, TypeVar

from sealpipe.plugin import (
    AccessDeniedError,
    Channel,
    Delivery,
    Message,
    PluginError,
    UnknownOutcomeError,
)
from sealpipe_plugins.http_errors import CHECK_FIRST
from sealpipe_plugins.http_reply import Reply
from sealpipe_plugins.wording import as_markdown

T = TypeVar("T")

PAGE: Final = 100
"""Comments per page: the maximum of both systems."""

PAGES: Final = 30
"""Maximum number of pages."""

_SEARCH_WINDOW: Final = timedelta(hours=24)
"""How far back comments are searched: nothing older is ever resent."""


class Thread(Protocol):
    """The comments of an issue, a pull request or a merge request."""

    def find(self, body: str) -> str | None:
        """Return the id of a comment of the last day with exactly this text, or None."""
        ...

    def create(self, body: str) -> str:
        """Create a comment and return its id."""
        ...

    def has_text(self, comment: str, body: str) -> bool:
        """Whether the comment has this text."""
        ...


class CommentChannel(Channel):
    """A channel that comments on issues.

    Where anyone can read them, only with the setting public.
    """

    @abstractmethod
    def _open_thread(self, to: str) -> Thread:
        """Return the thread of a recipient. Raises AccessDeniedError if anyone can read it."""

    def send(self, message: Message, to: str) -> Delivery:
        """Create the comment and read it back.

        Raises AccessDeniedError where anyone can read it.
        """
        return _deliver(self._open_thread(to), as_markdown(message))


def public_error(what: str, comment: str) -> AccessDeniedError:
    """Return the error for a comment on a repository or project, `what`, that is public."""
    return AccessDeniedError(
        f"the {what} is public: anyone could read the {comment}",
        remedy="use another channel, or allow it with the setting public",
    )


def _deliver(thread: Thread, body: str) -> Delivery:
    """Create a comment, unless one with the same text exists.

    Raises UnknownOutcomeError if it may still appear.
    """
    existing = thread.find(body)
    if existing is not None:
        return Delivery(existing, confirmed=True)
    try:
        created = thread.create(body)
    except UnknownOutcomeError as error:
        outcome_error = error
    else:
        return Delivery(
            created, confirmed=_read_if_possible(lambda: thread.has_text(created, body)) is True
        )
    existing = _read_if_possible(lambda: thread.find(body))
    if existing is None:
        raise outcome_error
    return Delivery(existing, confirmed=True)


def search_start() -> str:
    """Return where the search for comments starts in time, in the format of both systems."""
    return (datetime.now(UTC) - _SEARCH_WINDOW).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_pages(read: Callable[[int], Reply]) -> Iterator[list[dict[str, Any]]]:
    """Iterate over the rows of each page, from page 1, until a page is not full."""
    for page in range(1, PAGES + 1):
        identifier = read(page).json
        rows = identifier if isinstance(identifier, list) else []
        yield [row for row in rows if isinstance(row, dict)]
        if len(rows) < PAGE:
            return


def comment_id(reply: Reply) -> str:
    """Return the id of a created comment. UnknownOutcomeError if the response has none."""
    identifier = reply.member("id")
    if not isinstance(identifier, int):
        raise UnknownOutcomeError(f"the server is not {reply.system}", remedy=CHECK_FIRST)
    return str(identifier)


def _read_if_possible(request: Callable[[], T]) -> T | None:
    """Return the comment that was read, or None if reading failed.

    The comment exists either way.
    """
    try:
        return request()
    except PluginError:
        return None
