"""Values as files for a command: `run --file NAME=REF`.

They are in a folder that only this user can read, in memory where the system has such a place, and
gone once the command has ended. A lock on the folder is held by us and by the command. So what
neither of them could remove, because sealpipe was killed, is told from what is in use, and removed
by the next `sealpipe run`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from sealpipe.errors import StateError

_PREFIX: Final = "sealpipe-run-"
_IN_MEMORY: Final = "/dev/shm"  # noqa: S108 - the folder that is made in it is private


class ValueFiles(NamedTuple):
    """The path of each value's file by the variable's name, and the descriptor of their lock."""

    paths: Mapping[str, bytes]
    lock: int


@contextmanager
def make_files(environ: Mapping[str, str], values: Mapping[str, bytes]) -> Iterator[ValueFiles]:
    """Write each value to a file of mode 0600, and remove all of them at the end.

    Raises StateError if they cannot be written.
    """
    folder, lock = _make_folder(environ)
    try:
        yield ValueFiles(
            {name: os.fsencode(_write(folder / name, data)) for name, data in values.items()}, lock
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def remove_left_over(environ: Mapping[str, str]) -> None:
    """Remove the folders of this user that no process has in use."""
    for place in _list_places(environ):
        with suppress(OSError), os.scandir(place) as entries:
            for entry in entries:
                if entry.name.startswith(_PREFIX):
                    _remove_if_left_over(entry.path)


def _remove_if_left_over(folder: str) -> None:
    with suppress(OSError):
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            if os.fstat(lock).st_uid == os.geteuid():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)


def _list_places(environ: Mapping[str, str]) -> list[str]:
    """List where the folder may be, the best place first: those in memory, then one on disk."""
    places = [environ.get("XDG_RUNTIME_DIR", ""), _IN_MEMORY, tempfile.gettempdir()]
    return [each for each in dict.fromkeys(places) if each and os.access(each, os.W_OK | os.X_OK)]


def _make_folder(environ: Mapping[str, str]) -> tuple[Path, int]:
    """Make the folder and lock it; another run may take it for left over until it is locked."""
    reason = "there is no folder for it"
    for place in _list_places(environ):
        try:
            return _make_locked(place)
        except OSError as error:
            reason = f"{place}: {error.strerror}"
    raise StateError(
        f"no file can be made for --file: {reason}",
        remedy="set TMPDIR to a folder that you can write to",
    )


def _make_locked(place: str) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:
            continue  # another run has removed it
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if folder.stat().st_ino == os.fstat(lock).st_ino:
                return folder, lock
        except (BlockingIOError, FileNotFoundError):
            pass  # another run is removing it
        except OSError:
            folder.rmdir()
            os.close(lock)
            raise
        os.close(lock)


def _write(path: Path, data: bytes) -> Path:
    try:
        descriptor = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stat.S_IRUSR | stat.S_IWUSR
        )
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    except OSError as error:
        raise StateError(
            f"the file for {path.name} cannot be written: {error.strerror}",
            remedy="make room there, or set XDG_RUNTIME_DIR or TMPDIR to another folder",
        ) from None
    return path
