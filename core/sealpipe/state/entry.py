"""One entry of an outbox, wherever it is kept: notes, the exact body, and the events since then.

`JournaledLink` is the base of shares and requests: a link whose entry ends when the link is safe.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Protocol

from sealpipe.cancellation import current
from sealpipe.errors import (
    Note,
    OutcomeUnknownError,
    PluginError,
    PublicKeyMismatchError,
    ServiceError,
    StateError,
    UsageError,
)
from sealpipe.secret import Secret

MAX_RESEND_AGE = timedelta(hours=23)
"""Older entries are never sent again: the service forgets an idempotency key after 24 hours."""

_MAX_CLOCK_SKEW = timedelta(minutes=10)  # an entry from further in the future: a clock was set back
SECRET_MEMBERS = frozenset({"fragment", "passcode"})
"""Members of an entry's notes that are Secrets."""


@contextmanager
def keep_entry_on_error(entry: Entry | None) -> Iterator[None]:
    """Add a note to an error of the block that the entry is kept, and unlock the entry."""
    try:
        yield
    except BaseException as error:
        if entry is not None and entry.exists():
            note = Note(f"{entry.label} is kept: `{entry.commands.finish}` finishes it")
            if note not in getattr(error, "__notes__", ()):
                error.add_note(note)
            entry.close()
        raise


class EntryStore(Protocol):
    """Keeps shares and requests from the first byte sent until their links are delivered."""

    def prepare(self) -> None:
        """Make it ready to be written. Raises StateError."""

    def add(self, meta: Mapping[str, Any], body: bytes | bytearray) -> Entry:
        """Store a share or a request before it is sent.

        Raises StateError: then nothing may be sent.
        """


class EntryCommands(NamedTuple):
    """The commands for an entry, as messages name them.

    `finish` goes on with it, `resend` also repeats what may have happened, and `discard` gives it
    up.
    """

    finish: str
    resend: str
    discard: str
    keeps_link: bool
    """Whether a discarded entry's share or request stays."""


@dataclass(slots=True, eq=False)
class Entry(ABC):
    """An open entry, which nobody else works on. Every note is on disk before the call returns."""

    id: str
    created_at: datetime
    meta: Mapping[str, Any] = field(repr=False)
    body: bytes | bytearray = field(repr=False)
    response: Mapping[str, Any] | None = None
    key: str = field(default="", repr=False)
    is_stored: bool = False
    """Whether all targets are written."""
    write_states: dict[str, str] = field(default_factory=dict)
    """The state of the write to each sink that cannot be read back."""
    run: str = ""
    """The CI run that it belongs to; empty outside CI."""
    deliveries: dict[int, Any] = field(default_factory=dict)
    """The state of each message, by its number; none for one that has not been tried."""

    @property
    @abstractmethod
    def label(self) -> str:
        """The entry, as messages name it."""

    @abstractmethod
    def exists(self) -> bool:
        """Return whether it has not ended."""

    @property
    @abstractmethod
    def commands(self) -> EntryCommands:
        """The commands for this entry."""

    @abstractmethod
    def end(self) -> None:
        """End the finished entry. Raises StateError if that fails."""

    @abstractmethod
    def close(self) -> None:
        """Keep the entry for later, and unlock it."""

    @abstractmethod
    def _write(self, event: Mapping[str, Any]) -> None:
        """Record an event. Raises StateError."""

    def _note(self, event: Mapping[str, Any]) -> None:
        if _announces_change(event):
            current().raise_if_cancelled()
        self._write(event)

    def note_response(self, response: Mapping[str, Any]) -> None:
        """Record the service's response: short code, expiry, custody, outcome."""
        self._note({"answered": response})
        self.response = response

    def note_new_key(self, idempotency_key: str) -> None:
        """Record the one re-creation: the body without its wrap, under this key."""
        self._note({"key": idempotency_key})
        self.key = idempotency_key

    def note_stored(self) -> None:
        """Record that all targets are written, so that the share can be posted."""
        self._note({"stored": True})
        self.is_stored = True

    def write_state(self, marker: str, place: str) -> str:  # noqa: ARG002
        """Return the state of a write that cannot be read back: `storing`, `stored` or empty."""
        state = self.write_states.get(place, "")
        return state if state != "not stored" else ""

    def note_write(self, marker: str, place: str, state: str) -> None:  # noqa: ARG002 - as above
        """Record the state of a write. Raises StateError."""
        self._note({"place": [place, state]})
        self.write_states[place] = state

    def note_delivery(self, number: int, state: str) -> None:
        """Record a message's state: `sending` before its channel is called, then the outcome.

        `sent` or `failed`.
        """
        self._note({"delivery": [number, state]})
        self.deliveries[number] = state

    def is_too_old(self, now: datetime) -> bool:
        """Return whether the service may have forgotten the idempotency key."""
        return not -_MAX_CLOCK_SKEW <= now - self.created_at <= MAX_RESEND_AGE


def _announces_change(event: Mapping[str, Any]) -> bool:
    match event:
        case {"key": _} | {"delivery": [_, "sending"]} | {"place": [_, "storing"]}:
            return True
    return False


@dataclass(slots=True)
class JournaledLink:
    """A link whose only copy is here, until it is known to be safe elsewhere."""

    entry: Entry | None = field(default=None, repr=False, kw_only=True)

    def delivered(self) -> None:
        """End the outbox entry, because the link is safe where it belongs.

        Raises StateError if that fails.
        """
        entry, self.entry = self.entry, None
        if entry is not None:
            entry.end()

    def keep(self) -> None:
        """Leave the outbox entry to `resume`, now or in another process."""
        entry, self.entry = self.entry, None
        if entry is not None:
            entry.close()


@contextmanager
def settle_entry(entry: Entry | None, *, unclear: bool) -> Iterator[None]:
    """Send in this block.

    An error keeps the entry if the outcome is unclear, and ends it if nothing happened.

    `unclear`: it may have been sent before, by an earlier process.
    """
    try:
        yield
    except PublicKeyMismatchError as error:
        error.unclear = False  # it exists but is useless: there is nothing to find out
        discard_entry(entry)
        raise
    except ServiceError as error:
        if entry is None or not error.unclear:
            discard_entry(entry)
            raise
        kept = error.copy_with(
            remedy=f"run `{entry.commands.finish}`: it sends the same bytes under the same key"
        )
        kept.outbox_id = entry.id
        raise kept from error.__cause__
    except (UsageError, PluginError):
        # A network setting is wrong (a certificate file, a proxy), or a sink failed: nothing was
        # sent.
        if not unclear:
            discard_entry(entry)
        raise


def refuse_old_entry(entry: Entry) -> None:
    """Raise OutcomeUnknownError, and unlock the entry, if it is too old to be sent again."""
    if entry.is_too_old(datetime.now(UTC)):
        entry.close()
        error = OutcomeUnknownError(
            f"{entry.label} is older than 23 hours: sending it again could make a second one",
            remedy=f"check `sealpipe {entry.meta['kind']}s list`, expire what you do not need, "
            f"then `{entry.commands.discard}` and create it again",
        )
        error.outbox_id = entry.id
        raise error


def discard_entry(entry: Entry | None) -> None:
    """Remove an entry whose request created nothing; ignore errors."""
    if entry is not None:
        with suppress(StateError):  # the first error matters more
            entry.end()


def get_marker(meta: Mapping[str, Any]) -> str:
    """Return the marker of an entry's share, which tells a sink what it has already."""
    marker: str = meta.get("marker") or meta["idempotency_key"]
    return marker


def wrap_secrets(notes: Mapping[str, Any]) -> dict[str, Any]:
    """Return loaded notes with their secrets as Secrets again, so that no traceback shows them."""
    return {
        name: Secret(value) if value and name in SECRET_MEMBERS else value
        for name, value in notes.items()
    }
