"""The outbox: shares and requests from the first byte sent until their links are delivered.

Each entry is a file, a sealed journal under a key derived from the credential, so that the file
alone opens nothing.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from sealpipe.api.operation import Credential
from sealpipe.cancellation import current
from sealpipe.errors import CredentialError, StateError, UsageError, quote_input
from sealpipe.parsing import format_time, parse_time
from sealpipe.secret import Secret, strips_frames
from sealpipe.state.entry import Entry, EntryCommands, wrap_secrets
from sealpipe.state.files import (
    describe_newer,
    make_private_directory,
    open_locked_file,
    refuse_newer,
    remove_file,
)
from sealpipe.state.journal import Journal, Record, derive_key, read_header
from sealpipe.wire import tokens

_INFO = b"sealpipe-outbox"
_ID = re.compile(r"[0-9a-f]{12}")
_SALT_SIZE = 16
_META, _BODY, _EVENT = b"M", b"B", b"E"


class EntrySummary(NamedTuple):
    """What is known of an entry without opening it.

    `damage` is the reason why it cannot be opened; empty if it can.

    Of a damaged entry only the id is certain: it is the file's name.
    """

    id: str
    key_id: str
    created_at: datetime
    run: str
    damage: str = ""


@dataclass(slots=True, eq=False, kw_only=True)
class FileEntry(Entry):
    """An entry that is a file, locked by this process."""

    journal: Journal = field(repr=False)
    path: Path

    @property
    def label(self) -> str:
        return f"outbox entry {self.id}"

    def exists(self) -> bool:
        return self.path.exists()

    @property
    def commands(self) -> EntryCommands:
        return list_commands(self.id)

    def end(self) -> None:
        try:
            remove_file(self.path)
        except OSError as error:
            raise StateError(
                f"{self.label} is finished, but cannot be removed: {error.strerror}",
                remedy=f"discard it later with `{self.commands.discard}`",
            ) from None
        finally:
            self.journal.close()

    def close(self) -> None:
        self.journal.close()

    def _write(self, event: Mapping[str, Any]) -> None:
        try:
            self.journal.append(_EVENT, _dump(event))
        except OSError as error:
            raise StateError(f"{self.label} cannot be written: {error.strerror}") from None


class Outbox:
    """The folder of entries. Without a credential they can be listed and discarded, not opened.

    An entry's id is the file's name, and is part of its first line, to which every record is bound:
    a copy under another name is not an entry, and is never sent.
    """

    def __init__(self, folder: Path, credential: Credential | None, run: str = "") -> None:
        self.folder = folder
        self.run = run
        self._credential = credential

    @property
    def credential(self) -> Credential:
        """The credential that opens these entries. Raises CredentialError if there is none."""
        if self._credential is None:
            raise CredentialError("outbox entries are opened with the credential that created them")
        return self._credential

    def prepare(self) -> None:
        """Make the folder. StateError if that fails."""
        make_private_directory(self.folder)

    def add(
        self,
        meta: Mapping[str, Any],
        body: bytes | bytearray,
        now: datetime | None = None,
        *,
        entry_id: str | None = None,
    ) -> Entry:
        """Store a share or a request before it is sent.

        StateError if that fails: then nothing may be sent.

        `entry_id` is a new one by default. Raises FileExistsError if there is an entry with that
        id.
        """
        current().raise_if_cancelled()
        moment = (now or datetime.now(UTC)).replace(microsecond=0)
        entry_id = entry_id or os.urandom(6).hex()
        salt = os.urandom(_SALT_SIZE)
        header = {
            "schema": 1,
            "id": entry_id,
            "key_id": self.credential.key_id,
            "created_at": format_time(moment),
            "run": self.run,
            "salt": base64.b64encode(salt).decode(),
        }
        path = make_private_directory(self.folder) / f"{entry_id}.sealed"
        try:
            journal = Journal.create(
                path,
                derive_key(self.credential, salt, _INFO, tokens.KEY_SIZE),
                header,
                _make_records(meta, body),
            )
            key = meta["idempotency_key"]  # a reminder also begins with the response to the request
            return FileEntry(
                entry_id,
                moment,
                meta,
                body,
                meta.get("response"),
                key,
                run=self.run,
                journal=journal,
                path=path,
            )
        except FileExistsError:
            raise
        except OSError as error:
            raise StateError(
                f"the outbox in {self.folder} cannot be written: {error.strerror}"
            ) from None
        except BaseException:
            path.unlink(missing_ok=True)  # interrupted before anything was sent
            raise

    def list(self, *, every_run: bool = False) -> list[EntrySummary]:
        """List the entries of this run (or of every run), oldest first, with damaged ones.

        A file whose first line is not ours is ignored.
        """
        if not self.folder.is_dir():
            return []
        summaries: list[EntrySummary] = []
        try:
            for path in self.folder.glob("*.sealed"):
                summary = _summarize(path)
                if summary is not None and (every_run or summary.damage or summary.run == self.run):
                    summaries.append(summary)
        except OSError as error:
            raise StateError(
                f"the outbox in {self.folder} cannot be read: {error.strerror}"
            ) from None
        return sorted(summaries, key=lambda summary: (summary.created_at, summary.id))

    @strips_frames
    def open(self, entry_id: str) -> Entry | Literal["busy", "gone"]:
        """Open and lock the entry; `busy` if another process works on it, `gone` if it has ended.

        StateError if it was made with another key id, this credential does not open it, or it is
        damaged: a member of its first line is missing or wrong, or it is a copy of another entry.
        """
        path = self._get_path(entry_id)
        try:
            header, key = self._read_key(path)
            journal, entry = Journal.open(path, key)
        except BlockingIOError:
            return "busy"
        except FileNotFoundError:
            return "gone"
        except OSError as error:
            raise StateError(f"outbox entry {entry_id} cannot be read: {error.strerror}") from None
        if not path.exists():  # it ended before it was locked
            journal.close()
            return "gone"
        return _replay(header, journal, path, entry)

    @strips_frames
    def read_meta(self, entry_id: str) -> Mapping[str, Any]:
        """Return the notes with which an entry began, also while another process works on it.

        StateError as `open`.
        """
        path = self._get_path(entry_id)
        try:
            return _load_meta(Journal.read(path, self._read_key(path)[1]))
        except OSError as error:
            raise StateError(f"outbox entry {entry_id} cannot be read: {error.strerror}") from None

    def _read_key(self, path: Path) -> tuple[Mapping[str, Any], bytes]:
        """Return the first line of an entry, and the key of its journal.

        Raises StateError and OSError.
        """
        header, entry_id = read_header(path), path.stem
        refuse_newer(header, f"outbox entry {entry_id}")
        damage = _find_damage(header, entry_id)
        if damage:
            raise StateError(
                f"outbox entry {entry_id} is damaged: {damage}",
                remedy=_remedy_for_damage(entry_id),
            )
        if header["key_id"] != self.credential.key_id:
            raise StateError(
                (
                    f"outbox entry {entry_id} was created with the API key {header['key_id']}, "
                    "not with this one"
                ),
                remedy="set SEALPIPE_API_KEY_FILE or SEALPIPE_API_KEY, and not both, to the "
                "credential that "
                f"created it; or discard the entry: `{list_commands(entry_id).discard}`",
            )
        return header, derive_key(
            self.credential, base64.b64decode(header["salt"]), _INFO, tokens.KEY_SIZE
        )

    def discard(self, entry_id: str) -> None:
        """Remove an entry without opening it.

        StateError if there is none, or another process works on it.

        StateError, too, if a newer sealpipe wrote it, which can still finish it.
        """
        path = self._get_path(entry_id)
        try:
            descriptor = open_locked_file(path)
        except BlockingIOError:
            raise StateError(
                f"another process is working on outbox entry {entry_id}", remedy="wait for it"
            ) from None
        except OSError:
            raise StateError(
                f"there is no outbox entry {entry_id}",
                remedy="list all entries: `sealpipe resume --list --all`",
            ) from None
        try:
            refuse_newer(_read_any_header(path), f"outbox entry {entry_id}")
            remove_file(path)
        except OSError as error:
            raise StateError(
                f"outbox entry {entry_id} cannot be removed: {error.strerror}"
            ) from None
        finally:
            os.close(descriptor)

    def _get_path(self, entry_id: str) -> Path:
        if not _ID.fullmatch(entry_id):
            raise StateError(
                f"{quote_input(entry_id)} is not the id of an outbox entry",
                remedy="list all entries: `sealpipe resume --list --all`",
            )
        return self.folder / f"{entry_id}.sealed"


def list_commands(entry_id: str) -> EntryCommands:
    """Return the commands for the entry with this id."""
    finish = f"sealpipe resume {entry_id}"
    return EntryCommands(finish, f"{finish} --resend", f"{finish} --discard", keeps_link=True)


def _remedy_for_damage(entry_id: str) -> str:
    return (
        "check `sealpipe shares list` and `sealpipe requests list`, then discard it with "
        f"`{list_commands(entry_id).discard}`"
    )


_MEMBERS: Mapping[str, Callable[[Any], object]] = {
    "schema": lambda value: value == 1 and value is not True,
    "id": lambda value: _ID.fullmatch(value),
    "key_id": lambda value: value.isprintable() and value,
    "created_at": parse_time,
    "run": lambda value: isinstance(value, str),
    "salt": lambda value: len(base64.b64decode(value, validate=True)) == _SALT_SIZE,
}
"""The members of an entry's first line, and their checks."""


def _find_damage(header: Mapping[str, Any], entry_id: str) -> str:
    """Return what is wrong with an entry's first line; empty for nothing."""
    for name, check in _MEMBERS.items():
        try:
            if check(header[name]):
                continue
        except (KeyError, TypeError, ValueError, AttributeError, UsageError):
            pass
        return f"its first line has no valid {name}"
    if header["id"] != entry_id:
        return f"it is a copy of entry {header['id']}, or was renamed"
    return ""


def _read_any_header(path: Path) -> Mapping[str, Any]:
    """Return an entry's first line; nothing if it is too damaged to be read."""
    try:
        return read_header(path)
    except (OSError, StateError):
        return {}


def _summarize(path: Path) -> EntrySummary | None:
    try:
        header = read_header(path)
        if not _ID.fullmatch(path.stem) or not header.keys() & {"schema", "salt"}:
            return None
        newer = describe_newer(header)
        damage = f"it {newer}" if newer else _find_damage(header, path.stem)
        if damage:
            modified_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
            return EntrySummary(path.stem, "", modified_at, "", damage)
        return EntrySummary(
            path.stem, header["key_id"], parse_time(header["created_at"]), header["run"]
        )
    except (OSError, StateError):
        return None


def _make_records(meta: Mapping[str, Any], body: bytes | bytearray) -> list[Record]:
    """Make the first records of a new entry's journal."""
    return [(_META, _dump({**meta, "body_size": len(body)})), (_BODY, memoryview(body))]


def _replay(
    header: Mapping[str, Any], journal: Journal, path: Path, records: list[tuple[bytes, bytes]]
) -> FileEntry:
    """Restore the entry from its first line and its journal's records.

    StateError if the journal is truncated.
    """
    entry_id, created_at, run = header["id"], parse_time(header["created_at"]), header["run"]
    meta = _load_meta(records)
    body = b"".join(payload for tag, payload in records if tag == _BODY)
    if not meta or len(body) != meta["body_size"]:
        journal.close()
        raise StateError(
            f"outbox entry {entry_id} is truncated",
            remedy=_remedy_for_damage(entry_id),
        )
    key = meta["idempotency_key"]
    entry = FileEntry(
        entry_id,
        created_at,
        meta,
        body,
        meta.get("response"),
        key,
        run=run,
        journal=journal,
        path=path,
    )
    for tag, payload in records:
        if tag == _EVENT:
            event = json.loads(payload)
            entry.response = event.get("answered", entry.response)
            entry.key = event.get("key", entry.key)
            entry.is_stored = event.get("stored", entry.is_stored)
            entry.write_states.update([event["place"]] if "place" in event else [])
            entry.deliveries.update([event["delivery"]] if "delivery" in event else [])
    return entry


def _load_meta(records: list[tuple[bytes, bytes]]) -> Mapping[str, Any]:
    return wrap_secrets(json.loads(records[0][1])) if records and records[0][0] == _META else {}


def _dump(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), default=Secret.reveal).encode()
