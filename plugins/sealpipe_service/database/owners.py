"""Which processes live: each has a file that it holds a lock on, and the kernel takes the lock back
when the process ends, however it does.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from pathlib import Path


class Owners:
    """The processes at one database file, this one among them. In memory (None) it is alone."""

    def __init__(self, database: Path | None) -> None:
        self.me = secrets.randbits(62)
        self._database = database
        self._held: int | None = None
        if database is not None:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            file = self._file(self.me)
            new = file.with_name(f"{file.name}.new")  # it has its name once it is locked
            self._held = os.open(new, flags, 0o600)
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            new.rename(file)
            self._remove_dead()

    def lives(self, owner: int) -> bool:
        """Return whether an owner's process still runs. Of one that has ended nothing stays."""
        if owner == self.me:
            return True
        if self._database is None:
            return False
        try:
            file = os.open(self._file(owner), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        else:
            with contextlib.suppress(FileNotFoundError):  # another was faster
                self._file(owner).unlink()
            return False
        finally:
            os.close(file)

    def _remove_dead(self) -> None:
        """Remove the files of those that were killed."""
        beginning = self._file(0).name[:-1]
        for each in self._file(0).parent.iterdir():
            owner = each.name.removeprefix(beginning)
            if each.name.startswith(beginning) and owner.isdecimal():
                with contextlib.suppress(PermissionError):  # of a command that root ran
                    self.lives(int(owner))

    def leave(self) -> None:
        """End being an owner."""
        if self._held is not None:
            self._file(self.me).unlink(missing_ok=True)
            os.close(self._held)
            self._held = None

    def _file(self, owner: int) -> Path:
        assert self._database is not None  # noqa: S101  # for mypy: only asked with a file
        return self._database.with_name(f"{self._database.name}-owner-{owner}")
