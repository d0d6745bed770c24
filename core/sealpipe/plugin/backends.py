"""The base classes of backends.

Sources to read secrets from, sinks to write results to, channels to send messages by.

The core calls them in threads, so their methods may block. They raise the errors of
`sealpipe.plugin`, which carry a locator and never data. Of any other exception users see only the
type, the file and the line.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Final, Literal, NamedTuple

from sealpipe.errors import PluginError, WriteConflictError
from sealpipe.plugin.context import Context
from sealpipe.secret import Secret

# Named tuples: a frozen dataclass costs four million instructions at every start.


class Locator(NamedTuple):
    """Names a document: a reference without its selector and without the core's own parameters.

    `text` is the canonical reference, for error messages: it is safe to print. `params` are the
    parameters that the source has declared, sorted by name. Equal locators are fetched once.
    `mention` distinguishes the documents of a FRESH source, counted from 0.
    """

    name: str
    body: str
    params: tuple[tuple[str, str], ...] = ()
    text: str = ""
    mention: int = 0

    def __str__(self) -> str:
        return self.text

    def param(self, name: str, default: str | None = None) -> str | None:
        """Return the decoded value of a parameter."""
        return dict(self.params).get(name, default)


class Document:
    """The whole content under a locator; the core selects and decodes.

    `content` is one value, exact to the byte, or a mapping from key to value. Values may be nested
    as in JSON; a value that was read as bytes stays bytes. `secret=False` is for content that is
    not secret at all, `public` names the mapping's keys that are not. `remark` is a line for
    people, without a value. `format` (json, yaml, dotenv) is for text that the source knows to be a
    map: it is parsed so unless the reference says otherwise. `expires_at` (with a time zone) is
    when the content becomes worthless, such as the end of a lease: no share of it lives longer.
    """

    __slots__ = ("content", "expires_at", "format", "public", "remark", "secret")

    def __init__(
        self,
        content: bytes | str | Mapping[str, Any],
        *,
        secret: bool = True,
        public: Collection[str] = (),
        remark: str = "",
        format: str = "",  # noqa: A002 - the parameter's name in references
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
    """The result of `check()`: whether the backend can be used now, and a one-line description."""

    ok: bool
    detail: str = ""


NOT_CONTACTED: Final = "settings complete; not contacted"
"""What doctor says of a backend without a `check` of its own."""


class Source(ABC):
    """A source of secrets."""

    concurrency: ClassVar[int] = 1
    """How many calls of `fetch` may run at once, each in its own thread.

    Ignored if `fetch_many` is overridden.
    """

    def __init__(self, settings: Any, context: Context) -> None:
        self.settings = settings
        self.context = context

    @abstractmethod
    def fetch(self, locator: Locator) -> Document:
        """Return the whole document.

        Raises SecretNotFoundError if it does not exist, AccessDeniedError if it may not be read.
        """

    def fetch_many(self, locators: Sequence[Locator]) -> dict[Locator, Document | PluginError]:
        """Fetch several documents; override it if the backend has a batch call.

        A failed one has its error as value.
        """
        documents: dict[Locator, Document | PluginError] = {}
        for locator in locators:
            try:
                documents[locator] = self.fetch(locator)
            except PluginError as error:
                documents[locator] = error
        return documents

    def check(self) -> Health:
        """Check whether the source can be used now, without reading a secret."""
        return Health(ok=True, detail=NOT_CONTACTED)

    def close(self) -> None:  # noqa: B027 - most have nothing to release
        """Release connections and logins.

        Called once at the end of a run; its errors are ignored.
        """


Mode = Literal["create", "replace", "merge"]
"""What to do if the target exists: create fails, replace overwrites it, merge keeps its other
keys.
"""


class SinkField(NamedTuple):
    """One value to store, under a key that the target names (never the submitter).

    The key is empty if the target names none: then the value is the whole document, and the only
    field. A sink whose targets hold one value each takes one field with any key.
    """

    key: str
    value: Secret


class WriteResult(NamedTuple):
    """What a sink confirms after reading back what it wrote.

    `known` is False if it could not read it back.

    With `already`, all values were stored before and nothing was written.
    """

    locator: Locator
    version: str = ""
    known: bool = True
    already: bool = False


class Sink(ABC):
    """A place to store values.

    A sink that is killed at any moment and called again with the same arguments must end in the
    same state as one that was not killed.
    """

    def __init__(self, settings: Any, context: Context) -> None:
        self.settings = settings
        self.context = context

    @abstractmethod
    def describe(self, locator: Locator, mode: Mode) -> str:
        """Describe what `put` would do, without calling the backend.

        ReferenceValueError for an invalid target.
        """

    @abstractmethod
    def put(
        self, locator: Locator, fields: Sequence[SinkField], *, mode: Mode, marker: str
    ) -> WriteResult:
        """Store the fields, read them back, and keep `marker` beside them if the backend can.

        The marker stands for one submission: up to 80 of A-Z a-z 0-9 . _ -, the same on every
        machine. Because of it, storing the same submission again writes nothing, and later changes
        are kept (`merge_fields` decides). If the backend cannot keep a marker, equal content counts
        as the same submission.

        Raises WriteConflictError if `mode` does not allow replacing what exists,
        UnknownOutcomeError if it is unknown whether the fields were stored, ReferenceValueError for
        an invalid key.
        """

    def check(self) -> Health:
        """Check whether the sink can be used now, without changing anything."""
        return Health(ok=True, detail=NOT_CONTACTED)

    def close(self) -> None:  # noqa: B027 - most have nothing to release
        """Release connections and logins, as `Source.close` does."""


def merge_fields(
    existing: Mapping[str, bytes] | None, wanted: Mapping[str, bytes], *, mode: Mode, marked: bool
) -> dict[str, bytes] | None:
    """Return the values that a target must hold; None if nothing has to be written.

    Raises WriteConflictError.

    `existing` is its current content (None if it does not exist), `marked` whether it carries this
    submission's marker: then the keys are ours, and their values may have been rotated since.
    """
    if existing is None:
        return dict(wanted)
    if marked and wanted.keys() <= existing.keys():
        return None
    after = {**existing, **wanted} if mode == "merge" else dict(wanted)
    if after == existing:
        return None
    if mode == "create":
        raise WriteConflictError(
            "the target already has other content",
            remedy=(
                "use another target, or allow a change: ?mode=merge or ?mode=replace in the target"
            ),
        )
    return after


class Message(NamedTuple):
    """A message with a link or a passcode, never both; or, without a secret, news of a batch.

    `secret` is that link or passcode, or the news in a line; `what` is `share`, `request`,
    `passcode` or `batch`. `text` is the whole message as plain text, including the secret. A
    channel with its own format may build the message from the other members.
    """

    what: str
    secret: Secret
    text: Secret
    subject: str
    title: str | None = None
    short_code: str = ""
    expires_at: datetime | None = None


class Delivery(NamedTuple):
    """A channel's report on a message that it accepted. `confirmed` if it read the message back."""

    id: str = ""
    confirmed: bool = False


class Channel(ABC):
    """A way to deliver messages to a recipient.

    `to`, the text after the channel's colon, is data: it names one recipient and nothing else.
    """

    def __init__(self, settings: Any, context: Context) -> None:
        self.settings = settings
        self.context = context

    @abstractmethod
    def validate(self, to: str) -> None:
        """Raise ReferenceValueError unless `to` is exactly one recipient.

        Sends nothing, and calls no backend.
        """

    @abstractmethod
    def send(self, message: Message, to: str) -> Delivery:
        """Send the message once.

        Raises UnknownOutcomeError if it is unknown whether the message was accepted; a bare
        PluginError means the same. Any other error means that it was certainly not accepted, and
        the core sends it again: after UnavailableError at once.
        """

    def canonical(self, to: str) -> str:
        """Return the recipient in one spelling, valid in any process and working directory.

        Called after `validate`; `send` gets the result. The core compares the results to see
        whether a link and a passcode go to the same recipient.
        """
        return to

    def check(self) -> Health:
        """Check whether the channel can be used now, without sending anything."""
        return Health(ok=True, detail=NOT_CONTACTED)
