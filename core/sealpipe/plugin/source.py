"""Sources: where secrets are read from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from sealpipe.errors import PluginError
from sealpipe.plugin.context import Context
from sealpipe.plugin.document import Document, Health, Locator


class Source(ABC):
    """Something that secrets are read from.

    Its methods may block; they are called in threads. They raise the errors of this module, which carry a
    locator and never data: anything else that leaves them is told to the user by its type's name only.
    """

    concurrency: ClassVar[int] = 1
    """How many calls of `fetch` may run at once, each in its own thread; ignored where `fetch_many` is a batch."""

    def __init__(self, settings: Any, context: Context) -> None:
        self.settings = settings
        self.context = context

    @abstractmethod
    def fetch(self, locator: Locator) -> Document:
        """The whole document. SecretNotFoundError where there is none, AccessDeniedError where we may not know."""

    def fetch_many(self, locators: Sequence[Locator]) -> dict[Locator, Document | PluginError]:
        """The same for several, where the backend has a batch. What fails is answered with its error."""
        answers: dict[Locator, Document | PluginError] = {}
        for locator in locators:
            try:
                answers[locator] = self.fetch(locator)
            except PluginError as error:
                answers[locator] = error
        return answers

    def check(self) -> Health:
        """Whether it can be used now, found out without reading a secret."""
        return Health(ok=True)

    def close(self) -> None:  # noqa: B027 - most have nothing to let go
        """Called once at the end of a run: let connections and logins go. What fails here is told to nobody."""
