"""Files that are whole or not there, that only their owner reads, and that survive a power cut."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterable
from pathlib import Path

_NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP})
_UNSUPPORTED = _NO_HARD_LINKS | {errno.EISDIR, errno.EINVAL}
_DESCRIPTOR_FOLDER = Path("/proc/self/fd")
_NO_LOCKS = frozenset({errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})
_REPLACED = frozenset({errno.ELOOP, errno.ENXIO})
"""What opening says where a plain file became a link, or a socket, since it was looked at."""
_NEW_FILE_FLAGS = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


Pieces = Callable[[], Iterable[bytes | memoryview]]
"""What makes a file's content; called again where a first way of writing turns out not to work."""


def create(path: Path, pieces: Pieces) -> None:
    """Write a new 0600 file, whole and on disk before this returns; see `create_locked`."""
    os.close(create_locked(path, pieces))


def create_locked(path: Path, pieces: Pieces) -> int:
    """Write a new 0600 file that has no name until it is whole; return it open, and locked by us.

    Never over a file, never through a link: raises FileExistsError where something is there already, OSError
    where it cannot be written. A kill leaves nothing behind (where the system knows no nameless files, at most
    one with another name, which the next call for the same path clears away).
    """
    if hasattr(os, "O_TMPFILE") and _DESCRIPTOR_FOLDER.exists():
        try:
            return _write_new(path, None, pieces())
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
    return _write_new(path, path.with_name(f".{path.name}.new"), pieces())


def _write_new(path: Path, temporary: Path | None, pieces: Iterable[bytes | memoryview]) -> int:
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        descriptor = _open_unnamed(path) if temporary is None else _open_named(temporary)
        try:
            os.fchmod(descriptor, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            for piece in pieces:
                write_all(descriptor, piece)
            os.fsync(descriptor)
            _link(temporary or descriptor, path, folder)
            _sync_name(path, folder)
        except BaseException:
            os.close(descriptor)
            raise
        finally:
            if temporary is not None:
                temporary.unlink(missing_ok=True)
        return descriptor
    finally:
        os.close(folder)


def _open_unnamed(path: Path) -> int:
    return os.open(path.parent, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)


def _open_named(temporary: Path) -> int:
    temporary.unlink(missing_ok=True)
    return os.open(temporary, _NEW_FILE_FLAGS, 0o600)


LOCK_TIMEOUT = 10.0
"""Seconds to wait for others that replace a file of the same folder."""


def replace(path: Path, content: bytes, expected: bytes | None = None) -> bool:
    """Put a new 0600 file in the place of another, at once and on disk before this returns.

    False, with nothing written, where it does not hold `expected` (None: anything, or nothing is there), or is a link
    or no plain file. All who replace files of one folder do so one after the other, by a lock on the folder that
    leaves nothing behind. A kill leaves the old file or the new one; one in between the new file's two names leaves
    that with the name `make_temporary_path`, which the next call for the same path clears away.
    """
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _lock(folder)
        if not _has_content(path.name, folder, expected):
            return False
        temporary = make_temporary_path(path)
        temporary.unlink(missing_ok=True)
        descriptor, is_named = _create_temporary(path, temporary)
        try:
            os.fchmod(descriptor, 0o600)
            write_all(descriptor, content)
            os.fsync(descriptor)
            if not is_named:
                _link(descriptor, temporary, folder)
            os.rename(temporary.name, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
        os.fsync(folder)
        return True
    finally:
        os.close(folder)  # and with it the lock goes


def make_temporary_path(path: Path) -> Path:
    """What a file that takes the place of `path` is called for a moment: no link can replace a file."""
    return path.with_name(f".{os.fsdecode(os.fsencode(path.name)[:200])}.sealpipe-new")


def _create_temporary(path: Path, temporary: Path) -> tuple[int, bool]:
    """A new file without a name; where the system knows none, with that one. And whether it has it."""
    if hasattr(os, "O_TMPFILE") and _DESCRIPTOR_FOLDER.exists():
        try:
            return _open_unnamed(path), False
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
    return os.open(temporary, _NEW_FILE_FLAGS, 0o600), True


def _lock(folder: int) -> None:
    """Keep others from replacing files of the folder meanwhile."""
    deadline = time.monotonic() + LOCK_TIMEOUT
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError(errno.ETIMEDOUT, "another process holds the directory's lock") from None
            time.sleep(0.01)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            raise OSError(errno.ENOLCK, "its file system does not support locks") from None


def _has_content(name: str, folder: int, expected: bytes | None) -> bool:
    """Whether that is a plain file of a folder, and holds `expected` (None: anything; then it need not be there)."""
    try:
        # Looked at before it is opened: opening a device may do something.
        is_plain_file = stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
        if expected is None or not is_plain_file:
            return is_plain_file
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return expected is None
    except OSError as error:
        if error.errno not in _REPLACED:
            raise
        return False
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return False
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(len(expected) + 1) == expected
    finally:
        os.close(descriptor)


def open_locked(path: Path) -> int:
    """Open a file for reading and writing, locked by us. Raises BlockingIOError where another has the lock."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _link(file: Path | int, path: Path, folder: int) -> None:
    """Give the finished file its name, refusing to replace another."""
    if isinstance(file, int):
        # With dst_dir_fd it is linkat, which follows the link in /proc to the file itself.
        os.link(_DESCRIPTOR_FOLDER / str(file), path.name, dst_dir_fd=folder, follow_symlinks=True)
        return
    try:
        os.link(file, path, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        # The look and the rename are two steps there: the best that such a file system allows.
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        file.rename(path)


def _sync_name(path: Path, folder: int) -> None:
    """Make the new name survive a power cut; where that fails, the file is not there."""
    try:
        os.fsync(folder)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write every byte; a short write is continued, so a full disk shows as the error it is."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def remove(path: Path) -> None:
    """Remove a file for good; one that is gone already is fine. Raises OSError."""
    path.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
