"""Copies a database while it is served."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from .access import DatabaseError
from .opening import check, describe, file_of
from .postgresql import read_address

_VARIABLES: Mapping[str, str] = {
    "host": "PGHOST",
    "hostaddr": "PGHOSTADDR",
    "port": "PGPORT",
    "user": "PGUSER",
    "dbname": "PGDATABASE",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "connect_timeout": "PGCONNECT_TIMEOUT",
}
"""What pg_dump is told by variables: all but the password."""

_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "LC_MESSAGES", "LD_LIBRARY_PATH")
"""What pg_dump has of our environment, where an address with its password may be."""


class CopyError(DatabaseError):
    """The copy was not made; nothing of it is left."""

    remedy = "give the path of a new file, in a folder that has room for it"


def backup(address: str, file: Path) -> None:
    """Copy a database into a new file of mode 0600: SQLite's as such, PostgreSQL's by pg_dump.

    pg_dump's file (`--format=custom`) is for pg_restore. Raises DatabaseError.
    """
    check(address)
    try:
        target = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise CopyError(f"{file}: {error.strerror}") from None
    try:
        source = file_of(address)
        if source is None:
            _dump(address, target)
        else:
            _copy(source, file)
        os.fsync(target)
    except BaseException:
        file.unlink(missing_ok=True)
        raise
    finally:
        os.close(target)


def _copy(source: Path, file: Path) -> None:
    try:
        with closing(sqlite3.connect(source)) as live, closing(sqlite3.connect(file)) as copy:
            live.backup(copy)
    except sqlite3.Error as error:
        raise CopyError(f"{file}: {error}") from error


def _dump(address: str, target: int) -> None:
    program = shutil.which("pg_dump")
    if program is None:
        raise CopyError(
            "pg_dump is not installed, which copies a PostgreSQL database",
            "install PostgreSQL's client programs, of the server's version or newer",
        )
    settings = read_address(address)
    with tempfile.TemporaryDirectory() as folder:  # of mode 0700
        passwords = Path(folder) / "passwords"
        passwords.write_text(_password_line(settings), encoding="utf-8")
        passwords.chmod(0o600)
        told = {name: str(settings[key]) for key, name in _VARIABLES.items() if key in settings}
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        done = subprocess.run(  # noqa: S603  # found in PATH, with words of ours
            [program, "--format=custom", "--no-password"],
            stdin=subprocess.DEVNULL,
            stdout=target,
            env={**kept, **told, "PGPASSFILE": str(passwords)},
            check=False,
        )
    if done.returncode:
        raise CopyError(
            f"the {describe(address)}: pg_dump failed, and has said why",
            "give pg_dump the server's own address, not a pooler's, and its owner's login",
        )


def _password_line(settings: Mapping[str, Any]) -> str:
    """Return the line of a password file that is for every login."""
    password = str(settings.get("password", ""))
    escaped = password.replace("\\", "\\\\").replace(":", "\\:")
    return f"*:*:*:*:{escaped}\n" if escaped else ""
