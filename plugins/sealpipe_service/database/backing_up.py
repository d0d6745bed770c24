"""Copies a database while it is served."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from .access import DatabaseError
from .opening import check, find_file


def backup(url: str, file: Path) -> None:
    """Copy a database into a new file of mode 0600. Raises DatabaseError."""
    check(url)
    try:
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    except OSError as error:
        raise DatabaseError(f"{file}: {error.strerror}") from None
    with closing(sqlite3.connect(find_file(url))) as source, closing(sqlite3.connect(file)) as copy:
        source.backup(copy)
