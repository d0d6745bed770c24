"""One entry of the outbox: a sealed journal of notes, the exact body, and what has happened since.

And what shares and requests have in common: a link whose entry ends when the link is safe.
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
from sealpipe.state import files
from sealpipe.state.journal import Journal, Record

MAX_RESEND_AGE = timedelta(hours=23)
"""Older entries are never resent: the service forgets an idempotency key after 24 hours."""

_MAX_CLOCK_SKEW = timedelta(minutes=10)  # an entry from further in the future tells of a clock that was set back
SECRET_MEMBERS = frozenset({"fragment", "passcode"})
"""Members of an entry's notes that are Secrets."""
_META, _BODY, _EVENT = b"M", b"B", b"E"


@contextmanager
def keep_entry_on_error(entry: Entry | None) -> Iterator[None]:
    """Whatever ends the block early tells, as a note, that the entry is kept; its lock is let go."""
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
    """An open entry, locked by this process. What is told to it is on disk before the call returns."""

    id: str
    created_at: datetime
    meta: Mapping[str, Any] = field(repr=False)
    body: bytes | bytearray = field(repr=False)
    journal: Journal = field(repr=False)
    path: Path
    response: Mapping[str, Any] | None = None
    key: str = field(default="", repr=False)
    is_stored: bool = False
    """Whether what is to be stored before it is posted is in its places."""
    write_states: dict[str, str] = field(default_factory=dict)
    """How far it is in each place that cannot be read back."""
    deliveries: dict[int, Any] = field(default_factory=dict)
    """How far each message is, by its number; one that is not there has not been tried."""

    def note_response(self, answer: Mapping[str, Any]) -> None:
        """The service has answered: short code, expiry, custody, outcome."""
        self._note({"answered": answer})
        self.response = answer

    def note_new_key(self, idempotency_key: str) -> None:
        """The one re-creation: from now on the body goes without its wrap, under this key."""
        self._note({"key": idempotency_key})
        self.key = idempotency_key

    def note_stored(self) -> None:
        """All that is to be stored before it is posted is in its places."""
        self._note({"stored": True})
        self.is_stored = True

    def write_state(self, marker: str, place: str) -> str:  # noqa: ARG002 - an entry is of one share
        """How far it is in a place that cannot be read back: `storing`, `stored`; empty for not begun."""
        state = self.write_states.get(place, "")
        return state if state != "not stored" else ""

    def note_write(self, marker: str, place: str, state: str) -> None:  # noqa: ARG002 - as above
        """How far it is from now on. Raises StateError."""
        self._note({"place": [place, state]})
        self.write_states[place] = state

    def note_delivery(self, number: int, state: str) -> None:
        """How far a message is: `sending` before its channel is asked, then `sent` or `failed`."""
        self._note({"delivery": [number, state]})
        self.deliveries[number] = state

    def is_too_old(self, now: datetime) -> bool:
        """Whether the service may have forgotten the idempotency key."""
        return not -_MAX_CLOCK_SKEW <= now - self.created_at <= MAX_RESEND_AGE

    def end(self) -> None:
        """Nothing is left to do: the entry goes. Raises StateError where it cannot be removed."""
        try:
            files.remove(self.path)
        except OSError as error:
            raise StateError(
                f"outbox entry {self.id} is finished, but cannot be removed: {error.strerror}",
                remedy=f"discard it later with `sealpipe resume {self.id} --discard`",
            ) from None
        finally:
            self.journal.close()

    def close(self) -> None:
        """Keep the entry for `resume`, and let go of it."""
        self.journal.close()

    def _note(self, event: Mapping[str, object]) -> None:
        try:
            self.journal.append(_EVENT, _dump(event))
        except OSError as error:
            raise StateError(f"outbox entry {self.id} cannot be written: {error.strerror}") from None


@dataclass(slots=True)
class JournaledLink:
    """Something whose link exists here and nowhere else, until somebody says that it is safe."""

    entry: Entry | None = field(default=None, repr=False, kw_only=True)

    def delivered(self) -> None:
        """The link is safe where it belongs: ends the outbox entry. Raises StateError where that fails."""
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
    """Send in this block. An error leaves the entry where the outcome is unclear, and ends it where nothing happened.

    `unclear`: it was sent by an earlier process.
    """
    try:
        yield
    except PublicKeyMismatchError as error:
        error.unclear = False  # it is there, and of no use: nothing is left to find out
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
        # A setting of the network is wrong (a certificate file, a proxy), or a sink failed: nothing was sent.
        if not unclear:
            discard_entry(entry)
        raise


def discard_entry(entry: Entry | None) -> None:
    """End an entry that nothing came of."""
    if entry is not None:
        with suppress(StateError):  # why it failed matters more than a file that could not be removed
            entry.end()


def make_records(meta: Mapping[str, Any], body: bytes | bytearray) -> list[Record]:
    """What a new entry's journal begins with."""
    return [(_META, _dump({**meta, "body_size": len(body)})), (_BODY, memoryview(body))]


def replay(
    entry_id: str, created_at: datetime, journal: Journal, path: Path, records: list[tuple[bytes, bytes]]
) -> Entry:
    """The entry that a journal holds. StateError where the journal is not whole."""
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
    """What was put away, its secrets closed again: a traceback's locals must not show them."""
    meta: dict[str, Any] = json.loads(data)
    return {name: Secret(value) if value and name in SECRET_MEMBERS else value for name, value in meta.items()}
