"""The outbox: what must not be lost between the first byte sent and the link delivered (DESIGN 6.1, rule S).

One sealed journal a share, under a key derived from the credential, so that the file alone opens nothing.
"""

from __future__ import annotations

import base64
import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from sealpipe.credential import Credential
from sealpipe.errors import CredentialError, StateError, UsageError
from sealpipe.secret import Secret
from sealpipe.sheltered import sheltered
from sealpipe.state import files
from sealpipe.state.journal import Journal, Record, read_header
from sealpipe.times import format_time, parse_time
from sealpipe.wire import derive

RESENDABLE = timedelta(hours=23)
"""Older entries are never resent: the service forgets an idempotency key after 24 hours."""

_SKEW = timedelta(minutes=10)  # an entry from further in the future tells of a clock that was set back
_INFO = b"sealpipe-outbox"
SECRET = frozenset({"fragment", "passcode"})
"""Members of an entry's notes that are Secrets."""
_META, _BODY, _EVENT = b"M", b"B", b"E"
_ID = re.compile(r"[0-9a-f]{12}")


@contextmanager
def kept(entry: Entry | None) -> Iterator[None]:
    """Whatever ends the block early tells, as a note, that the entry is kept; its lock is let go."""
    try:
        yield
    except BaseException as error:
        if entry is not None and entry.path.exists():
            error.add_note(f"outbox entry {entry.id} is kept: `sealpipe resume {entry.id}` finishes it")
            entry.close()
        raise


@dataclass(frozen=True, slots=True)
class Listed:
    """What can be told of an entry without opening it."""

    id: str
    key_id: str
    created_at: datetime
    run: str


@dataclass(slots=True)
class Entry:
    """An open entry, locked by this process. What is told to it is on disk before the call returns."""

    id: str
    created_at: datetime
    meta: Mapping[str, Any] = field(repr=False)
    body: bytes | bytearray = field(repr=False)
    journal: Journal = field(repr=False)
    path: Path
    answered: Mapping[str, Any] | None = None
    key: str = field(default="", repr=False)

    def note_answer(self, answer: Mapping[str, Any]) -> None:
        """The service has answered: short code, expiry, custody, outcome."""
        self._note({"answered": answer})
        self.answered = answer

    def note_new_key(self, idempotency_key: str) -> None:
        """The one re-creation: from now on the body goes without its wrap, under this key."""
        self._note({"key": idempotency_key})
        self.key = idempotency_key

    def too_old(self, now: datetime) -> bool:
        """Whether the service may have forgotten the idempotency key."""
        return not -_SKEW <= now - self.created_at <= RESENDABLE

    def end(self) -> None:
        """Nothing is left to do: the entry goes. Raises StateError where it cannot be removed."""
        try:
            files.remove(self.path)
        except OSError as error:
            raise StateError(
                f"outbox entry {self.id} is done with, but cannot be removed: {error.strerror}",
                remedy=f"drop it later with `sealpipe resume {self.id} --discard`",
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


class Outbox:
    """The folder of entries. Without a credential they can be listed and discarded, not opened."""

    def __init__(self, folder: Path, credential: Credential | None, run: str = "") -> None:
        self.folder = folder
        self.run = run
        self._credential = credential

    @property
    def credential(self) -> Credential:
        """The credential whose entries these are."""
        if self._credential is None:
            raise CredentialError("outbox entries are opened with the credential that made them")
        return self._credential

    def add(self, meta: Mapping[str, Any], body: bytes | bytearray, now: datetime | None = None) -> Entry:
        """Put a share away before it is sent. StateError where that cannot be done: then nothing may be sent."""
        moment = (now or datetime.now(UTC)).replace(microsecond=0)
        entry_id = secrets.token_hex(6)
        salt = os.urandom(16)
        header = {
            "schema": 1,
            "id": entry_id,
            "key_id": self.credential.key_id,
            "created_at": format_time(moment),
            "run": self.run,
            "salt": base64.b64encode(salt).decode(),
        }
        path = files.private_folder(self.folder) / f"{entry_id}.sealed"
        try:
            records: list[Record] = [(_META, _dump({**meta, "body_size": len(body)})), (_BODY, memoryview(body))]
            journal = Journal.create(path, self._key(salt), header, records)
        except OSError as error:
            raise StateError(f"the outbox in {self.folder} cannot be written: {error.strerror}") from None
        return Entry(entry_id, moment, meta, body, journal, path, key=meta["idempotency_key"])

    def list(self, *, every_run: bool = False) -> list[Listed]:
        """The entries of this run (or of every run), oldest first. A file that is none of ours is passed over."""
        if not self.folder.is_dir():
            return []
        found: list[Listed] = []
        try:
            for path in self.folder.glob("*.sealed"):
                listed = _listed(path)
                if listed is not None and (every_run or listed.run == self.run):
                    found.append(listed)
        except OSError as error:
            raise StateError(f"the outbox in {self.folder} cannot be read: {error.strerror}") from None
        return sorted(found, key=lambda listed: (listed.created_at, listed.id))

    @sheltered
    def open(self, entry_id: str) -> Entry | Literal["busy", "gone"]:
        """The entry, locked; `busy` where another process works on it, `gone` where it ended.

        StateError where it was made with another key id, or does not open with this credential.
        """
        path = self._path(entry_id)
        try:
            header = read_header(path)
            if header.get("key_id") != self.credential.key_id:
                raise StateError(
                    f"outbox entry {entry_id} was made with the API key {header.get('key_id')}, not with this one",
                    remedy="set SEALPIPE_API_KEY to the credential that made it",
                )
            journal, records = Journal.open(path, self._key(base64.b64decode(header["salt"])))
        except BlockingIOError:
            return "busy"
        except FileNotFoundError:
            return "gone"
        except OSError as error:
            raise StateError(f"outbox entry {entry_id} cannot be read: {error.strerror}") from None
        if not path.exists():  # it ended between the look and the lock
            journal.close()
            return "gone"
        return _replay(entry_id, parse_time(header["created_at"]), journal, path, records)

    def discard(self, entry_id: str) -> None:
        """Drop an entry unseen. StateError where there is none, or another process works on it."""
        path = self._path(entry_id)
        try:
            descriptor = files.open_locked(path)
        except BlockingIOError:
            raise StateError(f"another process works on outbox entry {entry_id}", remedy="wait for it") from None
        except OSError:
            raise StateError(
                f"there is no outbox entry {entry_id}",
                remedy="`sealpipe resume --list --all` tells which there are",
            ) from None
        try:
            files.remove(path)
        except OSError as error:
            raise StateError(f"outbox entry {entry_id} cannot be removed: {error.strerror}") from None
        finally:
            os.close(descriptor)

    def _path(self, entry_id: str) -> Path:
        if not _ID.fullmatch(entry_id):
            raise StateError(
                f"{entry_id[:20]!r} is not the id of an outbox entry",
                remedy="`sealpipe resume --list --all` tells which there are",
            )
        return self.folder / f"{entry_id}.sealed"

    def _key(self, salt: bytes) -> bytes:
        parts = [self.credential.auth_secret.reveal()]
        if self.credential.custody_secret is not None:
            # Never sent, so with it not even the service that saw the first two parts could open the file.
            parts.append(self.credential.custody_secret.reveal())
        return derive.hkdf(".".join(parts).encode(), salt, _INFO, 32)


def _replay(
    entry_id: str, created_at: datetime, journal: Journal, path: Path, records: list[tuple[bytes, bytes]]
) -> Entry:
    meta = _load(records[0][1]) if records and records[0][0] == _META else {}
    body = b"".join(payload for tag, payload in records if tag == _BODY)
    if not meta or len(body) != meta["body_size"]:
        journal.close()
        raise StateError(
            f"outbox entry {entry_id} is not whole: it was cut off by something other than sealpipe",
            remedy=f"look at `sealpipe shares list`, then drop it with `sealpipe resume {entry_id} --discard`",
        )
    entry = Entry(entry_id, created_at, meta, body, journal, path, key=meta["idempotency_key"])
    for tag, payload in records:
        if tag == _EVENT:
            event = json.loads(payload)
            entry.answered = event.get("answered", entry.answered)
            entry.key = event.get("key", entry.key)
    return entry


def _listed(path: Path) -> Listed | None:
    try:
        header = read_header(path)
        return Listed(header["id"], header["key_id"], parse_time(header["created_at"]), header["run"])
    except (OSError, UsageError, KeyError, TypeError):
        return None


def _dump(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), default=Secret.reveal).encode()


def _load(data: bytes) -> dict[str, Any]:
    """What was put away, its secrets closed again: a traceback's locals must not show them."""
    meta: dict[str, Any] = json.loads(data)
    return {name: Secret(value) if value and name in SECRET else value for name, value in meta.items()}
