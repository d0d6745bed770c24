"""What a call left unfinished that was killed, cancelled or failed: it is finished once, and nothing is sent twice."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from sealpipe.errors import SealpipeError, StateError
from sealpipe.mcp.made import (
    Made,
    list_made,
    lock_unfinished,
    open_outbox,
    read_made,
    resume,
    settle_without_entry,
)
from sealpipe.state.entry import Entry

if TYPE_CHECKING:
    from sealpipe.flows.session import Session

_POLL_INTERVAL: Final = 0.25


def settle(session: Session, folder: Path) -> None:
    """Finish the requests that a killed process of this server had begun, and remove records of what was never made.

    What somebody else works on and what cannot be finished now is left alone. So is all that would go to somebody, as
    every share does: a call that was cancelled sends nothing, unless the same call or a person says so again.
    """
    held = lock_unfinished(folder, session.base_url)  # before the outbox
    try:
        unfinished = set(held)
        found = list_made(folder, session.base_url, is_complete=False)
        records = {each.name: each for each in found}
        outbox = open_outbox(session, folder)
        for listed in outbox.list():
            try:
                entry: Entry | str = outbox.open(listed.id)
            except StateError:
                entry = "damaged"
            if isinstance(entry, str):
                unfinished.clear()  # it may be the entry of any of them
                continue
            name: str = entry.meta.get("name") or ""
            unfinished.discard(name)
            is_request = name in records and records[name].kind == "request"
            if not is_request or entry.meta.get("recipients"):
                entry.close()
                continue
            with suppress(SealpipeError):
                resume(session, folder, records[name], entry)
        for name in unfinished:
            settle_without_entry(folder, records[name])
    finally:
        for lock in held.values():
            lock.release()


def finish(session: Session, folder: Path, made: Made) -> tuple[Made | None, bool]:
    """Finish what an earlier call left, and return its record; also whether there was anything to finish.

    The record is None if nothing was created. What is left of a share that has ended is dropped. Waits for a call that
    works on it. Raises StateError if that takes too long, and the errors of creating and sending.
    """
    budget = session.start_budget()
    is_left = False
    while True:
        known = read_made(folder, made.id)
        if known is None:
            return None, is_left
        held = lock_unfinished(folder, made.base_url, made.id)
        try:
            if known.short_code is not None or held:
                entry = _find_entry(session, folder, known)
                if isinstance(entry, Entry):
                    if known.short_code is not None and has_ended(folder, known):
                        entry.end()
                        return known, False
                    return resume(session, folder, known, entry), True
                if entry is None and known.short_code is not None:
                    return known, is_left
                if entry is None:
                    settle_without_entry(folder, known)
                    return read_made(folder, made.id), True
        finally:
            for lock in held.values():
                lock.release()
        is_left = True
        if budget.get_remaining() <= _POLL_INTERVAL:
            raise StateError("another call is at work on the same", remedy="wait, then call `list`")
        session.wait(_POLL_INTERVAL)


def has_ended(folder: Path, made: Made) -> bool:
    """Return whether a share's link has stopped working, as far as this machine knows. Blocks."""
    from sealpipe.flows.share.expire import was_expired

    has_passed = made.expires_at is not None and made.expires_at <= datetime.now(UTC)
    return has_passed or was_expired(folder.parent / "shares", made.base_url, made.short_code or "")


def list_unfinished(session: Session, folder: Path) -> set[str]:
    """Return the names of what is in the outbox, and nobody works on. Blocks."""
    outbox, names = open_outbox(session, folder), set[str]()
    for listed in outbox.list():
        with suppress(StateError):  # a damaged entry, or one of another key
            entry = outbox.open(listed.id)
            if isinstance(entry, Entry):
                names.add(entry.meta.get("name") or "")
                entry.close()
    return names


def _find_entry(session: Session, folder: Path, made: Made) -> Entry | Literal["busy"] | None:
    """Open the outbox entry of a record; `busy` if it may be one that somebody else works on."""
    outbox = open_outbox(session, folder)
    is_busy = False
    for listed in outbox.list():
        try:
            entry = outbox.open(listed.id)
        except StateError as error:  # a damaged entry, or one of another key
            if made.short_code is None:
                error.message = f"an earlier attempt may be unfinished: {error.message}"
                raise
            continue
        if isinstance(entry, Entry):
            if entry.meta.get("name") == made.name:
                return entry
            entry.close()
        is_busy = is_busy or entry == "busy"
    return "busy" if is_busy else None
