"""All that the author of a plugin imports (DESIGN section 5).

    from sealpipe.plugin import Document, Locator, NotFound, Source, SourceInfo, hookimpl

    @hookimpl
    def sealpipe_sources(register):
        register(SourceInfo("attic", "boxes in the attic", factory="my_package.attic:AtticSource"))

The module with the hook is named by an entry point of the group `sealpipe`. It is imported for every listing
and completion: it imports no SDK; the module of the factory does.
"""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

import pluggy

from sealpipe.errors import (
    AuthFailed,
    BadReference,
    Conflict,
    Denied,
    NotConfigured,
    NotFound,
    PluginError,
    TooLarge,
    Unavailable,
    Unsupported,
)
from sealpipe.wire.encoding import PLAINTEXT_LIMIT

if TYPE_CHECKING:
    import logging

__all__ = [
    "API",
    "FRESH",
    "PLAINTEXT_LIMIT",
    "AuthFailed",
    "BadReference",
    "Conflict",
    "Context",
    "Denied",
    "Document",
    "Health",
    "Locator",
    "NotConfigured",
    "NotFound",
    "PluginError",
    "Source",
    "SourceInfo",
    "TooLarge",
    "Unavailable",
    "Unsupported",
    "hookimpl",
]

# Named tuples where values are compared: a frozen dataclass costs four million instructions at every start.

API: Final = 1
"""The version of this contract."""

FRESH: Final = "fresh"
"""The capability of a source that makes its documents: each mention in a run is fetched by itself.

Mentions that take different keys are parts of one document (the two halves of a key pair); those with the same
parameter `name`, which such a source declares, are one document, too.
"""

hookimpl = pluggy.HookimplMarker("sealpipe")
"""Marks a function as a hook of sealpipe."""


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
    the mapping's keys that are none. `remark` is a line for people about it, without a value.
    """

    __slots__ = ("content", "public", "remark", "secret")

    def __init__(
        self,
        content: bytes | str | Mapping[str, Any],
        *,
        secret: bool = True,
        public: Collection[str] = (),
        remark: str = "",
    ) -> None:
        self.content = content
        self.secret = secret
        self.public = public
        self.remark = remark

    def __repr__(self) -> str:
        return f"Document(..., secret={self.secret})"


class Health(NamedTuple):
    """What `check()` found: whether the source can be used now, and a line for people."""

    ok: bool
    detail: str = ""


class SourceInfo(NamedTuple):
    """What there is to know of a source without importing it.

    `factory` and `settings` are import strings, `module:name`: the Source's class, and a class whose
    instance, made without arguments, is given to it (empty: it is given None). `needs` are the requirements
    that `pip install` adds where the factory does not import. `params` are its own parameters of a reference,
    name and help. `capabilities` may hold FRESH. `format` (json, yaml, dotenv) is how its documents are read
    where a reference has none.
    """

    name: str
    summary: str
    factory: str
    settings: str = ""
    needs: tuple[str, ...] = ()
    params: Mapping[str, str] = MappingProxyType({})
    capabilities: tuple[str, ...] = ()
    format: str = ""
    api: int = API


class Context:
    """What the core hands to a plugin. What is not here, a plugin does without."""

    __slots__ = ("_name", "_stdin", "environ")

    def __init__(self, name: str, *, environ: Mapping[str, str] | None = None, stdin: BinaryIO | None = None) -> None:
        self._name = name
        self._stdin = stdin
        self.environ: Mapping[str, str] = os.environ if environ is None else environ

    @property
    def stdin(self) -> BinaryIO | None:
        """Standard input, binary. None where the process was started without one."""
        if self._stdin is not None:
            return self._stdin
        return None if sys.stdin is None else sys.stdin.buffer

    @property
    def logger(self) -> logging.Logger:
        """For what helps to find a fault. Never a value."""
        import logging  # most plugins of a run log nothing

        return logging.getLogger(f"sealpipe.plugin.{self._name}")


class Source(ABC):
    """Something that secrets are read from.

    Its methods may block; they are called in threads. They raise the errors of this module, which carry a
    locator and never data: anything else that leaves them is told to the user by its type's name only.
    """

    def __init__(self, settings: Any, context: Context) -> None:
        self.settings = settings
        self.context = context

    @abstractmethod
    def fetch(self, locator: Locator) -> Document:
        """The whole document. NotFound where there is none, Denied where we may not know."""

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
