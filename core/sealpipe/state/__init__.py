"""Files that must survive: atomic 0600 writes, locks, the sealed journal, and the outbox that stands on them.

Here: the state directory, which CI run it belongs to, and which shares this machine has expired.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from sealpipe import permissions
from sealpipe.errors import StateError
from sealpipe.state import files

_RUN_VARIABLES = (
    ("GITHUB_RUN_ID", ("GITHUB_REPOSITORY", "GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT", "GITHUB_JOB")),
    ("CI_JOB_ID", ("CI_PROJECT_PATH", "CI_JOB_ID")),
)
"""What tells one CI run from another: the variable that must be there, and those that make the name."""


def find_state_directory(environ: Mapping[str, str], setting: str | None) -> Path:
    """The state directory: the setting, else $XDG_STATE_HOME, else the CI's temporary folder, else the home's."""
    if setting:
        return Path(setting).absolute()
    if environ.get("XDG_STATE_HOME", "").startswith("/"):
        return Path(environ["XDG_STATE_HOME"]) / "sealpipe"
    if environ.get("GITHUB_ACTIONS") and environ.get("RUNNER_TEMP"):
        return Path(environ["RUNNER_TEMP"]) / "sealpipe"
    if environ.get("GITLAB_CI") and environ.get("CI_PROJECT_DIR"):
        # The runner's own folder for what must not lie in the checkout: it names files there itself.
        return Path(environ["CI_PROJECT_DIR"] + ".tmp") / "sealpipe"
    if environ.get("HOME", "").startswith("/"):
        return Path(environ["HOME"]) / ".local" / "state" / "sealpipe"
    raise StateError("the state directory cannot be located: HOME is not set")


def identify_run(environ: Mapping[str, str]) -> str:
    """The CI run that this process is part of, as one line; empty outside CI."""
    for indicator, names in _RUN_VARIABLES:
        if environ.get(indicator):
            return "/".join(environ.get(name, "") for name in names)
    return ""


def make_private_directory(path: Path) -> Path:
    """Make the folder (0700) where it is missing; refuse one that is another user's, a link, or others can replace."""
    flaw = permissions.find_folder_flaw(path.parent, os.environ, "the state")
    if flaw is not None:
        raise StateError(flaw[0], remedy=f"{flaw[1]}, or set SEALPIPE_STATE_DIR to a directory of your own")
    try:
        for folder in reversed((path, *path.parents)):
            # Parents too: mkdir would leave theirs to the umask, and in a CI job that is often 0.
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
        raise StateError(f"the directory {path} cannot be created or read: {error.strerror}") from None
    return path


def note_expired(folder: Path, base_url: str, short_code: str) -> None:
    """A share has been expired, as the service has answered. Raises StateError."""
    path, content = _locate_expired_note(folder, base_url, short_code)
    make_private_directory(folder)
    try:
        with suppress(FileExistsError):
            files.create(path, lambda: [content])
    except OSError as error:
        raise StateError(f"{path} cannot be written: {error.strerror}") from None


def was_expired(folder: Path, base_url: str, short_code: str) -> bool:
    """Whether that was noted. A file that does not say so, whole, says nothing."""
    path, content = _locate_expired_note(folder, base_url, short_code)
    try:
        return path.is_file() and not path.is_symlink() and path.read_bytes() == content
    except OSError:
        return False


def _locate_expired_note(folder: Path, base_url: str, short_code: str) -> tuple[Path, bytes]:
    line = {"schema": 1, "kind": "expired-share", "base_url": base_url, "short_code": short_code}
    from hashlib import sha256  # most commands expire nothing

    name = sha256(f"{base_url}\n{short_code}".encode()).hexdigest()[:32]
    return folder / f"{name}.json", json.dumps(line).encode() + b"\n"
