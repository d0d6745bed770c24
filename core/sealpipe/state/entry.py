"""One entry of the outbox: a sealed journal with notes, the exact body, and the events since then.

`JournaledLink` is the base of shares and requests: a link whose entry ends when the link is safe.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sealpipe.errors import Note, PluginError, PublicKeyMismatchError, ServiceError, StateError, UsageError
from sealpipe.secret import Secret
from sealpipe.state import remove_file
from sealpipe.state.journal import Journal, Record

MAX_RESEND_AGE = timedelta(hours=23)
"""Older entries are never sent again: the service forgets an idempotency key after 24 hours."""

_MAX_CLOCK_SKEW = timedelta(minutes=10)  # an entry from further in the future: a clock was set back
SECRET_MEMBERS = frozenset({"fragment", "passcode"})
"""Members of an entry's notes that are Secrets."""
_META, _BODY, _EVENT = b"M", b"B", b"E"


@contextmanager
def keep_entry_on_error(entry: Entry | None) -> Iterator[None]:
    """Add a note to an error of the block that the entry is kept, and unlock the entry."""
    try:
        yield
    except BaseException as error:
        if entry is not None and entry.path.exists():
            note = Note(f"outbox entry {entry.id} is kept: `sealpipe resume {entry.id}` finishes it")
            if note not in getattr(error, "__notes__", ()):
                error.add_note(note)
            entry.close()
        raise


@dataclass(slots=True, eq=False)
class Entry:
    """An open entry, locked by this process. Every note is on disk before the call returns."""

    id: str
    created_at: datetime
    meta: Mapping[str, Any] = field(repr=False)
    body: bytes | bytearray = field(repr=False)
    journal: Journal = field(repr=False)
    path: Path
    response: Mapping[str, Any] | None = None
    key: str = field(default="", repr=False)
    is_stored: bool = False
    """Whether all targets are written."""
    write_states: dict[str, str] = field(default_factory=dict)
    """The state of the write to each sink that cannot be read back."""
    deliveries: dict[int, Any] = field(default_factory=dict)
    """The state of each message, by its number; none for one that has not been tried."""

    def note_response(self, response: Mapping[str, Any]) -> None:
        """Record the service's response: short code, expiry, custody, outcome."""
        self._note({"answered": response})
        self.response = response

    def note_new_key(self, idempotency_key: str) -> None:
        """Record the one re-creation: from now on the body is sent without its wrap, under this key."""
        self._note({"key": idempotency_key})
        self.key = idempotency_key

    def note_stored(self) -> None:
        """Record that all targets are written, so that the share can be posted."""
        self._note({"stored": True})
        self.is_stored = True

    def write_state(self, marker: str, place: str) -> str:  # noqa: ARG002 - an entry is of one share
        """Return the state of a write to a sink that cannot be read back: `storing`, `stored`; empty if not begun."""
        state = self.write_states.get(place, "")
        return state if state != "not stored" else ""

    def note_write(self, marker: str, place: str, state: str) -> None:  # noqa: ARG002 - as above
        """Record the state of a write. Raises StateError."""
        self._note({"place": [place, state]})
        self.write_states[place] = state

    def note_delivery(self, number: int, state: str) -> None:
        """Record the state of a message: `sending` before its channel is called, then `sent` or `failed`."""
        self._note({"delivery": [number, state]})
        self.deliveries[number] = state

    def is_too_old(self, now: datetime) -> bool:
        """Return whether the service may have forgotten the idempotency key."""
        return not -_MAX_CLOCK_SKEW <= now - self.created_at <= MAX_RESEND_AGE

    def end(self) -> None:
        """Remove the finished entry. Raises StateError if it cannot be removed."""
        try:
            remove_file(self.path)
        except OSError as error:
            raise StateError(
                f"outbox entry {self.id} is finished, but cannot be removed: {error.strerror}",
                remedy=f"discard it later with `sealpipe resume {self.id} --discard`",
            ) from None
        finally:
            self.journal.close()

    def close(self) -> None:
        """Keep the entry for `resume`, and unlock it."""
        self.journal.close()

    def _note(self, event: Mapping[str, object]) -> None:
        try:
            self.journal.append(_EVENT, _dump(event))
        except OSError as error:
            raise StateError(f"outbox entry {self.id} cannot be written: {error.strerror}") from None


@dataclass(slots=True)
class JournaledLink:
    """A link whose only copy is here, until it is known to be safe elsewhere."""

    entry: Entry | None = field(default=None, repr=False, kw_only=True)

    def delivered(self) -> None:
        """End the outbox entry, because the link is safe where it belongs. Raises StateError if that fails."""
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
    """Send in this block. An error keeps the entry if the outcome is unclear, and ends it if nothing happened.

    `unclear`: it may have been sent before, by an earlier process.
    """
    try:
        yield
    except PublicKeyMismatchError as error:
        error.unclear = False  # it exists but is useless: there is nothing to find out
        discard_entry(entry)
        raise
    except ServiceError as error:
        if entry is not None and error.unclear:
            error.outbox_id = entry.id
            error.remedy = f"run `sealpipe resume {entry.id}`: it sends the same bytes under the same key"
        else:
            discard_entry(entry)
        raise
    except (UsageError, PluginError):
        # A network setting is wrong (a certificate file, a proxy), or a sink failed: nothing was sent.
        if not unclear:
            discard_entry(entry)
        raise


def discard_entry(entry: Entry | None) -> None:
    """Remove an entry whose request created nothing; ignore errors."""
    if entry is not None:
        with suppress(StateError):  # the first error matters more
            entry.end()


def make_records(meta: Mapping[str, Any], body: bytes | bytearray) -> list[Record]:
    """Make the first records of a new entry's journal."""
    return [(_META, _dump({**meta, "body_size": len(body)})), (_BODY, memoryview(body))]


def replay(
    entry_id: str, created_at: datetime, journal: Journal, path: Path, records: list[tuple[bytes, bytes]]
) -> Entry:
    """Restore the entry from its journal's records. StateError if the journal is truncated."""
    meta = _load(records[0][1]) if records and records[0][0] == _META else {}
    body = b"".join(payload for tag, payload in records if tag == _BODY)
    if not meta or len(body) != meta["body_size"]:
        journal.close()
        raise StateError(
            f"outbox entry {entry_id} is truncated",
            remedy="check `sealpipe shares list` and `sealpipe requests list`, "
            f"then discard it with `sealpipe resume {entry_id} --discard`",
        )
    entry = Entry(entry_id, created_at, meta, body, journal, path, key=meta["idempotency_key"])
    for tag, payload in records:
        if tag == _EVENT:
            event = json.loads(payload)
            entry.response = event.get("answered", entry.response)
            entry.key = event.get("key", entry.key)
            entry.is_stored = event.get("stored", entry.is_stored)
            entry.write_states.update([event["place"]] if "place" in event else [])
            entry.deliveries.update([event["delivery"]] if "delivery" in event else [])
    return entry


def _dump(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), default=Secret.reveal).encode()


def _load(data: bytes) -> dict[str, Any]:
    """Load notes, and wrap their secrets in Secrets again, so that no traceback shows them."""
    meta: dict[str, Any] = json.loads(data)
    return {name: Secret(value) if value and name in SECRET_MEMBERS else value for name, value in meta.items()}
