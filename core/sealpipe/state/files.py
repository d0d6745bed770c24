"""Files that must survive: atomic 0600 writes, locks, and the state directory that holds them.

The outbox (`outbox`, `entry`, `journal`), ledgers and receipts are written with these functions.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import BinaryIO

from sealpipe import permissions
from sealpipe.cancellation import current
from sealpipe.ci_systems import detect_ci_system
from sealpipe.errors import SealpipeError, StateError
from sealpipe.version import __version__

_MAX_SCHEMA = 2_147_483_647


def find_state_directory(environ: Mapping[str, str], setting: str | None) -> Path:
    """Return the state directory.

    The setting, else $XDG_STATE_HOME, else the CI's temporary folder, else the home.
    """
    if setting:
        return Path(setting).absolute()
    if environ.get("XDG_STATE_HOME", "").startswith("/"):
        return Path(environ["XDG_STATE_HOME"]) / "sealpipe"
    if environ.get("GITHUB_ACTIONS") and environ.get("RUNNER_TEMP"):
        return Path(environ["RUNNER_TEMP"]) / "sealpipe"
    if environ.get("GITLAB_CI") and environ.get("CI_PROJECT_DIR"):
        # The runner's own folder for files outside the checkout.
        return Path(environ["CI_PROJECT_DIR"] + ".tmp") / "sealpipe"
    if environ.get("HOME", "").startswith("/"):
        return Path(environ["HOME"]) / ".local" / "state" / "sealpipe"
    raise StateError("the state directory cannot be located: HOME is not set")


def identify_run(environ: Mapping[str, str]) -> str:
    """Return the CI run that this process belongs to, as one line.

    Empty outside CI or if the run has no known id.
    """
    system = detect_ci_system(environ)
    if system is None or not environ.get(system.job.run_id):
        return ""
    return "/".join(environ.get(name, "") for name in system.job.run)


def identify_pipeline(environ: Mapping[str, str]) -> str:
    """Return the CI run that a repeated job still belongs to, as one line.

    Empty outside CI, or if the system does not say.
    """
    system = detect_ci_system(environ)
    names = () if system is None else system.job.pipeline
    values = [environ.get(name, "") for name in names]
    return "/".join([system.name, *values]) if system is not None and values and all(values) else ""


def make_private_directory(path: Path) -> Path:
    """Create the folder (0700) if it is missing.

    Refuse another user's, a link, and one that others can replace.
    """
    flaw = permissions.find_folder_flaw(path.parent, os.environ, "the state")
    if flaw is not None:
        raise StateError(
            flaw[0], remedy=f"{flaw[1]}, or set SEALPIPE_STATE_DIR to a directory of your own"
        )
    try:
        for folder in reversed((path, *path.parents)):
            # Parents too: mkdir would use the umask for them, and in a CI job that is often 0.
            if not folder.exists():
                folder.mkdir(mode=0o700, exist_ok=True)
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode):
            raise StateError(f"{path} is not a directory")
        if status.st_uid != os.geteuid():
            raise StateError(f"{path} belongs to another user")
        if stat.S_IMODE(status.st_mode) != 0o700:
            path.chmod(0o700)
    except OSError as error:
        raise StateError(
            f"the directory {path} cannot be created or read: {error.strerror}"
        ) from None
    return path


_NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP})
_UNSUPPORTED = _NO_HARD_LINKS | {errno.EISDIR, errno.EINVAL}
_DESCRIPTOR_FOLDER = Path("/proc/self/fd")
_NO_LOCKS = frozenset({errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})
_NEW_FILE_FLAGS = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


Pieces = Callable[[], Iterable[bytes | memoryview]]
"""Writes a file's content; called again if the first method of writing does not work."""


def create_file(path: Path, pieces: Pieces) -> None:
    """Write a new 0600 file, complete and on disk before this returns; see `create_locked_file`."""
    os.close(create_locked_file(path, pieces))


def create_locked_file(path: Path, pieces: Pieces) -> int:
    """Write a new 0600 file that gets its name when it is complete.

    Return it open, and locked by us.

    Never overwrites a file or follows a link: raises FileExistsError if the path exists, OSError if
    the file cannot be written. A kill leaves nothing behind (on systems without nameless files, at
    most one with another name, which the next call for the same path removes).
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
"""Seconds to wait for another process that replaces a file in the same folder."""


def replace_file(path: Path, content: bytes, expected: bytes | None = None) -> bool:
    """Replace a file by a new 0600 file, atomically and on disk before this returns.

    Returns False, with nothing written, if the file does not contain `expected` (None: any content,
    or no file), or is a link or not a plain file. Replacements in one folder happen one after
    another, by a lock on the folder that leaves nothing behind. A kill leaves the old file or the
    new one; a kill between the new file's two names also leaves `make_temporary_path`, which the
    next call for the same path removes.
    """
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _lock(folder)
        if not _may_replace(path.name, folder, expected):
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
        os.close(folder)  # also releases the lock


def make_temporary_path(path: Path) -> Path:
    """Return the temporary name of a file that replaces `path`: no link can replace a file."""
    return path.with_name(f".{os.fsdecode(os.fsencode(path.name)[:200])}.sealpipe-new")


def _create_temporary(path: Path, temporary: Path) -> tuple[int, bool]:
    """Open a new file without a name, or with the temporary one if the system needs one.

    Whether it has it.
    """
    if hasattr(os, "O_TMPFILE") and _DESCRIPTOR_FOLDER.exists():
        try:
            return _open_unnamed(path), False
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
    return os.open(temporary, _NEW_FILE_FLAGS, 0o600), True


def _lock(folder: int) -> None:
    """Lock the folder against others that replace its files."""
    deadline = time.monotonic() + LOCK_TIMEOUT
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    errno.ETIMEDOUT, "another process holds the directory's lock"
                ) from None
            current().sleep(0.01)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            raise OSError(errno.ENOLCK, "its file system does not support locks") from None


def _may_replace(name: str, folder: int, expected: bytes | None) -> bool:
    """Return whether a file contains `expected` (None: any content, or no file)."""
    if expected is not None:
        return permissions.has_content(name, expected, folder=folder)
    try:
        return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return True


def open_at_once(path: Path) -> BinaryIO:
    """Open a file for reading, without waiting or following a link.

    A pipe of its name would block every command.
    """
    return os.fdopen(
        os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC), "rb"
    )


def open_locked_file(path: Path) -> int:
    """Open a file for reading and writing, locked by us.

    Raises BlockingIOError if another process has the lock.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _link(file: Path | int, path: Path, folder: int) -> None:
    """Give the finished file its name, without replacing another."""
    if isinstance(file, int):
        # With dst_dir_fd it is linkat, which follows the link in /proc to the file itself.
        os.link(_DESCRIPTOR_FOLDER / str(file), path.name, dst_dir_fd=folder, follow_symlinks=True)
        return
    try:
        os.link(file, path, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        # Check and rename are two steps: such a file system allows nothing better.
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        file.rename(path)


def _sync_name(path: Path, folder: int) -> None:
    """Make the new name survive a power cut; if that fails, remove the file."""
    try:
        os.fsync(folder)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all bytes, also after short writes, so that a full disk is an error."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def remove_file(path: Path) -> None:
    """Remove a file for good; a missing one is fine. Raises OSError."""
    path.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def refuse_newer(members: object, name: str, error: type[SealpipeError] = StateError) -> None:
    """Raise `error` if a newer sealpipe wrote these members of `name` (see `describe_newer`)."""
    if newer := describe_newer(members):
        raise error(
            f"{name} {newer}", remedy="install that version, or a later one; nothing was changed"
        )


def describe_newer(members: object) -> str:
    """Return how members that a newer sealpipe wrote are described.

    Empty if their `schema` is not above ours.

    A schema of more digits than a release will ever have is damage: Python cannot even print the
    largest.
    """
    schema = members.get("schema") if isinstance(members, dict) else None
    if type(schema) is not int or not 1 < schema <= _MAX_SCHEMA:
        return ""
    return (
        f"was written by a newer sealpipe: its schema is {schema}, and sealpipe {__version__} "
        "reads 1"
    )
