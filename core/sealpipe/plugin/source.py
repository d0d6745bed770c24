"""Sources: where secrets are read; what a source is asked for, and what it returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

from sealpipe.errors import PluginError
from sealpipe.plugin.context import Context

# Named tuples where values are compared: a frozen dataclass costs four million instructions at every start.


class Locator(NamedTuple):
    """Which document is meant: a reference without its selector and the core's own parameters.

    `text` is the canonical reference, to be named in errors: safe to print. `params` are the parameters that
    the source has declared, sorted by name. Two equal locators are fetched once. `mention` tells the documents of
    a FRESH source apart, from 0.
    """

    name: str
    body: str
    params: tuple[tuple[str, str], ...] = ()
    text: str = ""
    mention: int = 0

    def __str__(self) -> str:
        return self.text

    def param(self, name: str, default: str | None = None) -> str | None:
        """The value of a parameter, decoded."""
        return dict(self.params).get(name, default)


class Document:
    """What lives under a locator, whole; the core selects and decodes.

    `content` is one value, exact to the byte, or a mapping from key to value (values may be nested, as JSON
    is; a value that was read as bytes stays bytes). `secret=False` is for what is no secret at all, `public` names
    the mapping's keys that are none. `remark` is a line for people about it, without a value. `format` (json, yaml,
    dotenv) is for text that the source has seen to be a map: it is read so unless the reference says otherwise.
    `expires_at` (with a time zone) is the moment after which the content is worth nothing, as a lease's end is: no
    share of it lives longer.
    """

    __slots__ = ("content", "expires_at", "format", "public", "remark", "secret")

    def __init__(
        self,
        content: bytes | str | Mapping[str, Any],
        *,
        secret: bool = True,
        public: Collection[str] = (),
        remark: str = "",
        format: str = "",  # noqa: A002 - the word of the reference
        expires_at: datetime | None = None,
    ) -> None:
        self.content = content
        self.secret = secret
        self.public = public
        self.remark = remark
        self.format = format
        self.expires_at = expires_at

    def __repr__(self) -> str:
        return f"Document(..., secret={self.secret})"


class Health(NamedTuple):
    """What `check()` found: whether it can be used now, and a line for people."""

    ok: bool
    detail: str = ""


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
