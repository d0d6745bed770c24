"""Check whether other users of this machine can write or replace a file, by modes and owners.

Files that a CI system, Kubernetes or Docker creates for a job are trusted as they are: no other users are there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

MOUNTED = (Path("/run/secrets"), Path("/var/run/secrets"))
"""Where Docker and Kubernetes mount secrets."""

_OF_A_JOB = (
    ("GITLAB_CI", "CI_PROJECT_DIR", ".tmp"),  # its helper makes files and folders for everybody (0666, 0777)
    ("GITHUB_ACTIONS", "RUNNER_TEMP", ""),
    ("TF_BUILD", "AGENT_TEMPDIRECTORY", ""),
    ("CREDENTIALS_DIRECTORY", "CREDENTIALS_DIRECTORY", ""),  # systemd
)
"""A sign, and the variable that names the job's own folder; what is added to it."""

_CHECKED_OUT = (("GITLAB_CI", "CI_PROJECT_DIR", ""),)
"""The same of where a job works: its runner makes that folder for everybody (0777)."""

_MOST_LINKS = 40


def file_flaw(
    path: Path, found: os.stat_result, what: str, environ: Mapping[str, str], mode: str = "go-w"
) -> tuple[str, str] | None:
    """Return why others could have written a file, and the command that corrects it; None if they could not.

    `found` is its fstat result, `mode` the argument for chmod. Pipes and devices are not checked.
    """
    if not stat.S_ISREG(found.st_mode) or made_by_system(path, environ):
        return None
    if found.st_mode & 0o002:
        return f"any user can write {what} {path}", f"chmod {mode} {path}"
    if _group_writes(path, found):
        return f"a group can write {what} {path}", f"chmod {mode} {path}"
    if not _trusted(found.st_uid):
        return f"{what} {path} belongs to another user", f"chown {os.geteuid()} {path}"
    return folder_flaw(path.parent, environ, f"{what} {path}")


def readable_by_others(path: Path, environ: Mapping[str, str]) -> bool:
    """Whether other users can read a file that holds a secret, unless a CI system or the like created it so."""
    try:
        found = path.stat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and bool(found.st_mode & 0o077) and not made_by_system(path, environ)


def folder_flaw(folder: Path, environ: Mapping[str, str], what: str) -> tuple[str, str] | None:
    """Return which folder on the path lets others replace `what`, and the command that corrects it; None for none.

    Every folder on the path counts, those behind links too. A missing one is skipped.
    """
    trusted = _own_folders(environ, *_CHECKED_OUT)
    for passed, found in _seen(folder):
        if any(passed == own or passed in own.parents for own in trusted):
            continue  # what the CI has made, and what it stands in
        if found.st_mode & stat.S_ISVTX and _trusted(found.st_uid):
            continue  # others may make files there, and touch none of ours
        if found.st_mode & 0o002:
            return f"any user can write {passed}, and so replace {what}", f"chmod o-w {passed}"
        if _group_writes(passed, found):
            return f"a group can write {passed}, and so replace {what}", f"chmod g-w {passed}"
        if not _trusted(found.st_uid):
            return f"{passed} belongs to another user, who can replace {what}", "use a directory of your own"
    return None


def made_by_system(path: Path, environ: Mapping[str, str]) -> bool:
    """Whether a CI system, Kubernetes, Docker or systemd created the file for this job."""
    whole = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow the links that Kubernetes makes
    if any(folder in whole.parents for folder in (*MOUNTED, *_own_folders(environ))):
        return True
    return (whole.parent / "..data").is_symlink()  # a volume of Kubernetes: secret, config map, projected


def _own_folders(environ: Mapping[str, str], *others: tuple[str, str, str]) -> list[Path]:
    rows = (*_OF_A_JOB, *others)
    named = [environ[variable] + more for sign, variable, more in rows if environ.get(sign) and environ.get(variable)]
    return [Path(os.path.normpath(name)) for name in named if name.startswith("/") and os.path.normpath(name) != "/"]


def _seen(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Those folders with what they are, as far as we may look: what lies behind cannot be used by us, either."""
    with suppress(OSError):
        for passed in _passed(folder):
            if not stat.S_ISDIR((found := passed.stat()).st_mode):
                return  # nothing lies behind a file; and a device, such as /dev/null, is as it has to be
            yield passed, found


def _passed(folder: Path) -> Iterator[Path]:
    """The folders that a look-up goes through, from the root on, links followed one by one."""
    left = list(reversed(Path(os.path.abspath(folder)).parts[1:]))  # noqa: PTH100 - as above
    here, links = Path("/"), 0
    yield here
    while left:
        name = left.pop()
        if name == "..":
            here = here.parent
            continue
        there = here / name
        if there.is_symlink() and links < _MOST_LINKS:
            links += 1
            target = there.readlink()
            here = Path("/") if target.is_absolute() else here
            left += reversed([part for part in target.parts if part != "/"])
            continue
        here = there
        yield here


def _group_writes(path: Path, found: os.stat_result) -> bool:
    """Whether somebody beside the owner may write as a group: not so for root's, nor for a user's own group.

    With an access list the group's bit stands for all whom that names.
    """
    if not found.st_mode & 0o020:
        return False
    return _has_list(path) or (found.st_gid != 0 and not _private(found.st_uid, found.st_gid))


def _has_list(path: Path) -> bool:
    try:
        return bool(os.getxattr(path, "system.posix_acl_access"))
    except (OSError, AttributeError):  # none here, or a system that keeps them otherwise
        return False


def _private(user: int, group: int) -> bool:
    """Whether a group has that user only: by its name and members, or by its number where it has no name."""
    import grp
    import pwd

    try:
        owner, entry = pwd.getpwuid(user), grp.getgrgid(group)
    except KeyError:
        return user == group
    return entry.gr_name == owner.pw_name and set(entry.gr_mem) <= {owner.pw_name}


def _trusted(user: int) -> bool:
    """Root and ourselves. Root itself works in folders of others wherever a container has one mounted."""
    return os.geteuid() == 0 or user in (0, os.geteuid()) or _is_roots_outside(user)


def _is_roots_outside(user: int) -> bool:
    """Whether it stands for whoever this user namespace does not know, as the host's root does."""
    try:
        unknown = int(Path("/proc/sys/fs/overflowuid").read_text())
        whole = Path("/proc/self/uid_map").read_text().split()
    except (OSError, ValueError):
        return False
    return user == unknown and whole != ["0", "0", "4294967295"]
