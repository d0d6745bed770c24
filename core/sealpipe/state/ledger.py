"""The ledger of a request.

The ciphertext of its submissions, the DELETEs that were sent, and the writes to sinks.

A ledger is an append-only file of JSON lines for one request: 0600 in a 0700 folder, locked while
it is open. It is not sealed: its submissions are encrypted to a key that the service never had.
Without a folder, the same data is held in memory, for this process only.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from sealpipe.api.requests import Submission
from sealpipe.cancellation import current
from sealpipe.errors import StateError, UsageError
from sealpipe.parsing import parse_time
from sealpipe.state.files import (
    create_locked_file,
    make_private_directory,
    open_locked_file,
    refuse_newer,
    write_all,
)

_REMEDY = "inspect it, move it away if you do not need it, and run the command again"


@dataclass(frozen=True, slots=True)
class PendingDelete:
    """A DELETE of unknown outcome, with the time it was sent.

    By our clock, and by the service's if known.
    """

    at: datetime
    answered_at: datetime | None = None


class Ledger(ABC):
    """One request's ledger, open and locked until `close()`.

    Every note is on disk before the call returns.
    """

    path: Path | None = None
    """The file on disk; None in memory."""

    def __init__(self) -> None:
        # A cancelled call may close its ledger while a thread is still writing.
        self._lock = threading.RLock()
        self.pending: PendingDelete | None = None
        # a DELETE has expired the request: another one would destroy it, whatever the service
        # reports
        self.is_expired = False
        self.is_purging = False
        self._identities: set[str] = set()
        self._write_states: dict[tuple[str, str], str] = {}

    def keep(self, submissions: Iterable[Submission]) -> None:
        """Store the ciphertext of new submissions. Raises StateError."""
        rows = {identify_submission(row): row for row in map(_to_row, submissions)}
        self._note(
            [
                {"submission": row}
                for identity, row in rows.items()
                if identity not in self._identities
            ]
        )

    def note_delete(self, delete: PendingDelete) -> None:
        """Record that a DELETE is about to be sent. Raises StateError: then it must not be sent."""
        server_time = None if delete.answered_at is None else delete.answered_at.isoformat()
        self._note([{"sending": {"at": delete.at.isoformat(), "told_at": server_time}}])

    def note_purge(self) -> None:
        """Record that a DELETE that destroys, as requested, is about to be sent.

        Raises StateError.
        """
        self._note([{"purging": True}])

    def note_purge_result(self) -> None:
        """Record that the outcome of that DELETE is known. Raises StateError."""
        self._note([{"purging": False}])

    def write_state(self, marker: str, target: str) -> str:
        """Return the state of a write that cannot be read back: `storing`, `stored` or empty."""
        state = self._write_states.get((marker, target), "")
        return state if state != "not stored" else ""

    def note_write(self, marker: str, target: str, state: str) -> None:
        """Record the state of a write. Raises StateError."""
        self._note([{"placing": {"marker": marker, "place": target, "state": state}}])

    def note_deletes(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Record another ledger's events about a DELETE that expires. Raises StateError."""
        self._note([dict(each) for each in events if "sending" in each or "settled" in each])

    def settle(self, outcome: str) -> None:
        """Record that no DELETE that expires is under way any more. Raises StateError."""
        with self._lock:
            if self.pending is not None:
                self._note([{"settled": outcome}])

    @abstractmethod
    def close(self) -> None:
        """Close and unlock the ledger. It can be repeated."""

    @abstractmethod
    def _write(self, lines: list[dict[str, Any]]) -> None: ...

    def _note(self, events: list[dict[str, Any]]) -> None:
        if any(map(_announces_change, events)):
            current().raise_if_cancelled()
        with self._lock:
            if events:
                self._write(events)
            for event in events:
                self._apply(event)

    def _apply(self, event: Mapping[str, Any]) -> None:
        match event:
            case {"submission": dict(row)}:
                self._identities.add(identify_submission(row))
            case {"sending": {"at": str(at), "told_at": server_time}}:
                answered_at = None if server_time is None else parse_time(server_time)
                self.pending = PendingDelete(parse_time(at), answered_at)
            case {"purging": bool(purging)}:
                self.is_purging = purging
            case {"settled": outcome}:
                self.pending = None
                self.is_expired = self.is_expired or outcome == "expired"
            case {"placing": {"marker": str(marker), "place": str(place), "state": str(state)}}:
                self._write_states[marker, place] = state
            case _:
                raise ValueError


def _announces_change(event: Mapping[str, Any]) -> bool:
    match event:
        case {"sending": _} | {"purging": True} | {"placing": {"state": "storing"}}:
            return True
    return False


LedgerOpener = Callable[[str, str], Ledger | None]
"""Opens the ledger of a request by the service's base URL and the short code, instead of a folder;
None if another one has it open."""


def has_ledger(folder: Path, base_url: str, short_code: str) -> bool:
    """Return whether this machine has a ledger of that request."""
    return (folder / f"{_make_name(base_url, short_code)}.jsonl").exists()


def _make_name(base_url: str, short_code: str) -> str:
    return sha256(f"{base_url}\n{short_code}".encode()).hexdigest()[:32]


def open_ledger(folder: Path | None, base_url: str, short_code: str) -> Ledger | None:
    """Open and lock the ledger of a request; None if another process has it open.

    Raises StateError.
    """
    name = _make_name(base_url, short_code)
    if folder is None:
        return _MemoryLedger.open(name)
    head = {"schema": 1, "kind": "request", "base_url": base_url, "short_code": short_code}
    return open_file(FileLedger, folder / f"{name}.jsonl", head)


def open_file(
    kind: type[AnyFileLedger], path: Path, head: Mapping[str, Any]
) -> AnyFileLedger | None:
    """Open and lock a ledger in a file, whose first line is `head`; None if another process has it
    open.

    Raises StateError.
    """
    make_private_directory(path.parent)
    try:
        descriptor = _open_file(path, head)
        return None if descriptor is None else kind(path, descriptor, head)
    except OSError as error:
        raise StateError(f"the record {path} cannot be opened: {error.strerror}") from None


def _open_file(path: Path, head: Mapping[str, Any]) -> int | None:
    try:
        descriptor = open_locked_file(path)
    except BlockingIOError:
        return None
    except FileNotFoundError:
        try:
            return create_locked_file(path, lambda: [_to_line(head)])
        except FileExistsError:
            return None  # another process has just created it: try again, as for a locked one
    with suppress(FileNotFoundError):
        if os.path.samestat(path.stat(), os.fstat(descriptor)):
            return descriptor
    os.close(descriptor)  # removed before it was locked, so the lock is worthless
    return None


class FileLedger(Ledger):
    """A ledger in a file."""

    def __init__(self, path: Path, descriptor: int, head: Mapping[str, Any]) -> None:
        super().__init__()
        self.path = path
        self._descriptor = descriptor
        self._end, self._is_empty = 0, True
        try:
            self._load(path, head)
        except BaseException:
            self._release()
            raise

    def _load(self, path: Path, head: Mapping[str, Any]) -> None:
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        with os.fdopen(self._descriptor, "rb", closefd=False) as file:
            for number, line in enumerate(file):
                if not line.endswith(b"\n"):
                    # truncated by a kill: never acknowledged, and overwritten by the next line
                    break
                try:
                    event = json.loads(line)
                    if number:
                        self._apply(event)
                    else:
                        refuse_newer(event, f"the record {path}")
                        if event != head:
                            raise ValueError
                except StateError:
                    raise
                except (ValueError, TypeError, UsageError, RecursionError):
                    raise StateError(
                        f"line {number + 1} of {path} is not a valid record", remedy=_REMEDY
                    ) from None
                self._end += len(line)
                self._is_empty = number == 0

    def _write(self, lines: list[dict[str, Any]]) -> None:
        data = b"".join(map(_to_line, lines))
        try:
            os.ftruncate(self._descriptor, self._end)
            os.lseek(self._descriptor, self._end, os.SEEK_SET)
            write_all(self._descriptor, data)
            os.fsync(self._descriptor)
        except BaseException as error:
            with suppress(OSError):  # a line that was not acknowledged must not count next time
                os.ftruncate(self._descriptor, self._end)
            if not isinstance(error, OSError):
                raise
            raise StateError(
                f"the record {self.path} cannot be written: {error.strerror}"
            ) from None
        self._end += len(data)
        self._is_empty = False

    def close(self) -> None:
        if self._descriptor >= 0 and self._is_empty and self.path is not None:
            self.path.unlink(missing_ok=True)  # still locked: no other process has it
        self._release()

    def _release(self) -> None:
        with self._lock:
            # First, so that an interruption cannot close it twice.
            descriptor, self._descriptor = (
                self._descriptor,
                -1,
            )
        if descriptor >= 0:
            # A child forked meanwhile keeps the file open, not the lock.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

    def __del__(self) -> None:
        # A cancelled call drops its ledger: the lock must not outlive it.
        if getattr(self, "_descriptor", -1) >= 0:
            self._release()


AnyFileLedger = TypeVar("AnyFileLedger", bound=FileLedger)


class _MemoryLedger(Ledger):
    _guard: ClassVar[threading.RLock] = threading.RLock()  # __del__ takes it, at any moment
    _busy: ClassVar[set[str]] = set()
    _events: ClassVar[dict[str, list[dict[str, Any]]]] = {}

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        for event in self._events.get(name, ()):
            self._apply(event)
        self._is_open = True

    @classmethod
    def open(cls, name: str) -> Ledger | None:
        with cls._guard:
            if name in cls._busy:
                return None
            cls._busy.add(name)
        return cls(name)

    def _write(self, lines: list[dict[str, Any]]) -> None:
        # The caller has the submissions in the result; only what the next call needs is stored
        # here.
        self._events.setdefault(self._name, []).extend(
            line for line in lines if "submission" not in line
        )

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            with self._guard:
                if self.pending is None and not self.is_purging and not self._write_states:
                    self._events.pop(self._name, None)
                    if self.is_expired:
                        self._events[self._name] = [{"settled": "expired"}]
                self._busy.discard(self._name)

    def __del__(self) -> None:
        if getattr(self, "_is_open", False):
            self.close()


def _to_row(submission: Submission) -> dict[str, Any]:
    return {
        **submission.extra,
        "short_code": submission.short_code,
        "created_at": submission.created_at and submission.created_at.isoformat(),
        "encryption_type": submission.encryption_type,
        "data": submission.data,
    }


def identify_submission(row: Mapping[str, Any]) -> str:
    """Return the identity of a submission's row in a ledger: 64 hexadecimal digits."""
    # includes the ciphertext: if two submissions have the same code, both are stored
    return sha256(json.dumps([row.get("short_code"), row.get("data")]).encode()).hexdigest()


def _to_line(members: Mapping[str, Any]) -> bytes:
    return json.dumps(members, separators=(",", ":")).encode() + b"\n"
