"""Notices that a database is older than what this machine has seen in it.

It was restored from a backup.

A file in the state directory holds, for each batch, how far its database was when this machine last
worked on it. Only this machine knows, so this finds many restored backups, not all. `adopt` begins
anew.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from sealpipe.batch.database.records import Batch
from sealpipe.batch.database.store import BatchStore
from sealpipe.errors import StateError
from sealpipe.state.files import make_private_directory, replace_file

ADOPTED_AT = "adopted_at"
"""The member of a batch's content that says when it was last adopted, in microseconds."""


def check_high_water(store: BatchStore, batch: Batch | None) -> None:
    """Raise StateError if a batch's database is older than what this machine has seen in it."""
    if batch is None or store.marks_folder is None:
        return
    seen = _load_mark(_find_file(store.marks_folder, batch))
    if seen is not None and _read_mark(store, batch) < seen:
        raise StateError(
            f"the {store.description} is older than what this machine has seen of the "
            f"batch {batch.name}: it was "
            "restored from a backup, and messages may have been sent since",
            remedy=(
                "run `sealpipe batch adopt FILE`: it finds what the service knows, and blocks "
                "what nobody knows"
            ),
        )


def note_high_water(store: BatchStore, batch: Batch, *, is_adopted: bool = False) -> None:
    """Note how far a batch's database is: less than before only if it was adopted just now."""
    if store.marks_folder is None:
        return
    # A run that cannot write here has done its work all the same.
    with suppress(OSError, StateError):
        path = _find_file(make_private_directory(store.marks_folder), batch)
        mark, seen = _read_mark(store, batch), _load_mark(path)
        if seen is None or mark > seen or is_adopted:
            replace_file(path, json.dumps(mark).encode())


def _find_file(folder: Path, batch: Batch) -> Path:
    return folder / f"{batch.id}.json"


def _read_mark(store: BatchStore, batch: Batch) -> list[int]:
    """Return what grows with every write.

    A purged batch that begins anew is younger, as is one that was adopted.
    """
    return [
        batch.created_at,
        int(batch.content.get(ADOPTED_AT, 0)),
        store.history.count_changes(batch),
    ]


def _load_mark(path: Path) -> list[int] | None:
    """Return what a file holds; None if it holds no mark."""
    try:
        members = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    is_mark = (
        isinstance(members, list)
        and len(members) == 3
        and all(type(each) is int for each in members)
    )
    return members if is_mark else None
