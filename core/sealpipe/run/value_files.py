"""Values as files for a command: `run --file NAME=REF`.

They are in a folder that only this user can read, in memory where the system has such a place, and
gone once the command has ended. A lock on the folder is held by us and by the command, at a
terminal by the process that leads it. So what neither of them could remove, because sealpipe was
killed, is told from what is in use, and removed by the next `sealpipe run`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from sealpipe.errors import StateError

_PREFIX, _SUFFIX = ".sealpipe-run-", ".values"
_PLACES: Final = ("/dev/shm", "/tmp", "/var/tmp")  # noqa: S108 - the folder made in it is private
_ENDING: Final = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)


class ValueFiles(NamedTuple):
    """The path of each value's file by the variable's name, and the descriptor of their lock."""

    paths: Mapping[str, bytes]
    lock: int


@contextmanager
def make_files(environ: Mapping[str, str], values: Mapping[str, bytes]) -> Iterator[ValueFiles]:
    """Write each value to a file of mode 0600, and remove all of them at the end, in the main
    thread.

    Raises StateError if they cannot be written.
    """
    folder, lock = _make_folder(environ)
    try:
        for name, data in values.items():
            _write(name, data, lock)
        yield ValueFiles({name: os.fsencode(folder / name) for name in values}, lock)
    finally:
        with _undisturbed():
            _remove(folder, lock)
            os.close(lock)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ignore what would end the process, for as long as files are removed."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def remove_left_over(environ: Mapping[str, str]) -> None:
    """Remove the folders of this user that no process has in use."""
    for place in _list_places(environ):
        with suppress(OSError), os.scandir(place) as entries:
            for entry in entries:
                if entry.name.startswith(_PREFIX) and entry.name.endswith(_SUFFIX):
                    _remove_if_left_over(entry.path)


def _remove_if_left_over(folder: str) -> None:
    with suppress(OSError):
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            if os.fstat(lock).st_uid == os.geteuid():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(folder, lock)
        finally:
            os.close(lock)


def _remove(folder: str | Path, lock: int) -> None:
    os.fchmod(lock, stat.S_IRWXU)  # its command may have taken our right away
    shutil.rmtree(folder, ignore_errors=True)


def _list_places(environ: Mapping[str, str]) -> list[str]:
    """List where the folder may be, the best place first: those in memory, then those on disk."""
    places = [environ.get("XDG_RUNTIME_DIR", ""), *_PLACES]
    return [each for each in dict.fromkeys(places) if Path(each).is_absolute() and _is_safe(each)]


def _is_safe(place: str) -> bool:
    """Return whether nobody but us and root can rename or remove what we make in a folder."""
    try:
        found = os.stat(place)  # noqa: PTH116 - one call for all of it
    except OSError:
        return False
    is_shared = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid in (0, os.geteuid())
        and not is_shared
        and os.access(place, os.W_OK | os.X_OK)
    )


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
        remedy="set XDG_RUNTIME_DIR to a folder of yours that nobody else can write to",
    )


def _make_locked(place: str) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(_SUFFIX, _PREFIX, place))
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


def _write(name: str, data: bytes, folder: int) -> None:
    """Write a file in the folder of this descriptor. Raises StateError."""
    try:
        descriptor = os.open(
            name,
            os.O_WRONLY | os.O_CREAT | os.O_EXCL,
            stat.S_IRUSR | stat.S_IWUSR,
            dir_fd=folder,
        )
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    except OSError as error:
        raise StateError(
            f"the file for {name} cannot be written: {error.strerror}",
            remedy="make room there, or set XDG_RUNTIME_DIR to another folder of yours",
        ) from None
