"""Checks whether others can write or replace a file, and refuses files that expose processes.

Files that a CI system, Kubernetes or Docker creates for a job are trusted as they are: there are no
other users. Files in `/proc` (`environ`, `mem`, `cmdline` ...) are refused: they expose this
process's own credential. The check is on the opened descriptor, so that symbolic links, `/dev/fd/3`
and other mounts of /proc are refused as well.

Files whose size or kind others control are also read and compared here, within a limit.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from sealpipe.errors import ReferenceValueError

MOUNTED = (Path("/run/secrets"), Path("/var/run/secrets"))
"""Where Docker and Kubernetes mount secrets."""

# Its helper makes files and folders that everyone can write (0666, 0777).
_JOB_FOLDERS = (
    (
        "GITLAB_CI",
        "CI_PROJECT_DIR",
        ".tmp",
    ),
    ("GITHUB_ACTIONS", "RUNNER_TEMP", ""),
    ("TF_BUILD", "AGENT_TEMPDIRECTORY", ""),
    ("CREDENTIALS_DIRECTORY", "CREDENTIALS_DIRECTORY", ""),  # systemd
)
"""An indicator, the variable that names the job's own folder, and a suffix."""

_CHECKOUT_FOLDERS = (("GITLAB_CI", "CI_PROJECT_DIR", ""),)
"""The same for checkout folders, which the runner creates writable for all users (0777)."""

_MAX_LINKS = 40


def find_file_flaw(
    path: Path, status: os.stat_result, what: str, environ: Mapping[str, str], mode: str = "go-w"
) -> tuple[str, str] | None:
    """Return why others could have written a file and what corrects it, or None.

    `status` is its fstat result, `mode` the argument for chmod. Pipes and devices are not checked.
    """
    if not stat.S_ISREG(status.st_mode) or is_system_created(path, environ):
        return None
    if status.st_mode & 0o002:
        return f"any user can write {what} {path}", f"chmod {mode} {path}"
    if _is_group_writable(path, status):
        return f"a group can write {what} {path}", f"chmod {mode} {path}"
    if not _is_trusted(status.st_uid):
        return f"{what} {path} belongs to another user", f"chown {os.geteuid()} {path}"
    return find_folder_flaw(path.parent, environ, f"{what} {path}")


def is_readable_by_others(path: Path, environ: Mapping[str, str]) -> bool:
    """Return whether others can read a secret's file, unless a CI system made it so."""
    try:
        status = path.stat()
    except OSError:
        return False
    return (
        stat.S_ISREG(status.st_mode)
        and bool(status.st_mode & 0o077)
        and not is_system_created(path, environ)
    )


def find_folder_flaw(folder: Path, environ: Mapping[str, str], what: str) -> tuple[str, str] | None:
    """Return which folder lets others replace `what` and what corrects it, or None.

    Checks every folder on the path, also behind links. Skips missing ones.
    """
    trusted = _list_own_folders(environ, *_CHECKOUT_FOLDERS)
    for current, status in _stat_folders(folder):
        if any(current == job_folder or current in job_folder.parents for job_folder in trusted):
            continue  # the CI system's folder, or a parent of it
        if status.st_mode & stat.S_ISVTX and _is_trusted(status.st_uid):
            continue  # others can create files there, but not change ours
        if status.st_mode & 0o002:
            return f"any user can write {current}, and so replace {what}", f"chmod o-w {current}"
        if _is_group_writable(current, status):
            return f"a group can write {current}, and so replace {what}", f"chmod g-w {current}"
        if not _is_trusted(status.st_uid):
            return (
                f"{current} belongs to another user, who can replace {what}",
                "use a directory of your own",
            )
    return None


def is_system_created(path: Path, environ: Mapping[str, str]) -> bool:
    """Whether a CI system, Kubernetes, Docker or systemd created the file for this job."""
    # resolve() would follow the links that Kubernetes makes.
    absolute = Path(os.path.abspath(path))  # noqa: PTH100
    if any(folder in absolute.parents for folder in (*MOUNTED, *_list_own_folders(environ))):
        return True
    return (
        absolute.parent / "..data"
    ).is_symlink()  # a volume of Kubernetes: secret, config map, projected


def _list_own_folders(environ: Mapping[str, str], *others: tuple[str, str, str]) -> list[Path]:
    rows = (*_JOB_FOLDERS, *others)
    paths = [
        environ[variable] + suffix
        for indicator, variable, suffix in rows
        if environ.get(indicator) and environ.get(variable)
    ]
    return [
        Path(os.path.normpath(name))
        for name in paths
        if name.startswith("/") and os.path.normpath(name) != "/"
    ]


def _stat_folders(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield these folders with their status, up to the first that we cannot read.

    Nothing below it is usable.
    """
    with suppress(OSError):
        for current in _walk_folders(folder):
            if not stat.S_ISDIR((status := current.stat()).st_mode):
                return  # a file has nothing below it; a device, such as /dev/null, is fine
            yield current, status


def _walk_folders(folder: Path) -> Iterator[Path]:
    """Yield the folders that a path lookup visits, from the root on, following links one by one."""
    remaining = list(reversed(Path(os.path.abspath(folder)).parts[1:]))  # noqa: PTH100 - as above
    current, links = Path("/"), 0
    yield current
    while remaining:
        name = remaining.pop()
        if name == "..":
            current = current.parent
            continue
        child = current / name
        if child.is_symlink() and links < _MAX_LINKS:
            links += 1
            target = child.readlink()
            current = Path("/") if target.is_absolute() else current
            remaining += reversed([part for part in target.parts if part != "/"])
            continue
        current = child
        yield current


def _is_group_writable(path: Path, status: os.stat_result) -> bool:
    """Return whether others can write through the group.

    Not through root's group or the owner's private group.

    With an access control list, the group bit covers everyone in the list.
    """
    if not status.st_mode & 0o020:
        return False
    return _has_acl(path) or (
        status.st_gid != 0 and not _is_private_group(status.st_uid, status.st_gid)
    )


def _has_acl(path: Path) -> bool:
    try:
        return bool(os.getxattr(path, "system.posix_acl_access"))
    except (OSError, AttributeError):  # no list, or a system without this attribute
        return False


def _is_private_group(user: int, group: int) -> bool:
    """Whether a group has only this user.

    By its name and members, or by its number if it has no name.
    """
    import grp  # both only for a file that a group may read
    import pwd

    try:
        owner, entry = pwd.getpwuid(user), grp.getgrgid(group)
    except KeyError:
        return user == group
    return entry.gr_name == owner.pw_name and set(entry.gr_mem) <= {owner.pw_name}


def _is_trusted(user: int) -> bool:
    """Return whether a user is root or ourselves.

    Root trusts everyone: containers mount folders of other users.
    """
    return os.geteuid() == 0 or user in (0, os.geteuid()) or _is_outside_namespace(user)


def _is_outside_namespace(user: int) -> bool:
    """Return whether the id is outside this user namespace, such as the host's root."""
    try:
        overflow_uid = int(Path("/proc/sys/fs/overflowuid").read_text())
        mapping = Path("/proc/self/uid_map").read_text().split()
    except (OSError, ValueError):
        return False
    return user == overflow_uid and mapping != ["0", "0", "4294967295"]


def read_file(path: str | Path, limit: int) -> bytes:
    """Return a file's content.

    Raises OSError if it cannot be read, or is larger than `limit` bytes (errno EFBIG).
    """
    with Path(path).open("rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise OSError(errno.EFBIG, f"it is larger than {limit} bytes", str(path))
    return content


_REPLACED_ERRORS: Final = frozenset({errno.ELOOP, errno.ENXIO})
"""The errors of opening a plain file that has become a link, or a socket, since it was checked."""


def has_content(path: str | Path, expected: bytes, *, folder: int | None = None) -> bool:
    """Return whether a plain file (no link, pipe or device) contains exactly `expected`.

    Never waits, and does not read a larger file to its end. A relative path starts at `folder`, an
    open directory, if given. Raises OSError if the file cannot be read.
    """
    try:
        # checked before it is opened: opening a device may have side effects
        if not stat.S_ISREG(os.stat(path, dir_fd=folder, follow_symlinks=False).st_mode):
            return False
        descriptor = os.open(
            path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder
        )
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno not in _REPLACED_ERRORS:
            raise
        return False
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return False
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(len(expected) + 1) == expected
    finally:
        os.close(descriptor)


_PROC: Final = 0x9FA0
"""The file system's number in `fstatfs` (Linux: `PROC_SUPER_MAGIC`)."""


def open_file(path: str | Path, what: object) -> BinaryIO:
    """Open a file for reading.

    Raises OSError, and ReferenceValueError, naming `what`, if it exposes processes.
    """
    # The path as given: Path would drop a leading ./.
    stream: BinaryIO = open(path, "rb")  # noqa: PTH123, SIM115
    try:
        refuse_process_file(stream.fileno(), what)
    except BaseException:
        stream.close()
        raise
    return stream


def refuse_process_file(descriptor: int, what: object) -> None:
    """Raise ReferenceValueError for an open file that exposes processes.

    `what` names it.
    """
    if _is_process_file(descriptor):
        raise ReferenceValueError(
            (
                f"{what} is in /proc, which exposes processes (this one's credential, too) and "
                "is never shared"
            ),
            remedy="name the file or the variable that the secret comes from",
        )


def _is_process_file(descriptor: int) -> bool:
    status = os.fstat(descriptor)
    if os.major(status.st_dev) or not stat.S_ISREG(status.st_mode):
        return False  # a file on a disk, or a pipe or a device
    try:
        # The same call as for the descriptor.
        if status.st_dev == os.stat("/proc").st_dev:  # noqa: PTH116
            return True
    except OSError:
        return False  # a system without /proc
    return _get_file_system(descriptor) == _PROC


def _get_file_system(descriptor: int) -> int | None:
    """Return the number of an open file's file system; None if the system does not say."""
    import ctypes  # only files that are on no disk get here

    result = ctypes.create_string_buffer(512)
    try:
        if ctypes.CDLL(None).fstatfs(descriptor, result) != 0:
            return None
    except (OSError, AttributeError):
        return None
    return int(ctypes.c_long.from_buffer(result).value)
