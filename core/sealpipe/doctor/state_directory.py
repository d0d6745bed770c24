"""Check the state directory: where it is, who may read it, whether it is writable, what is left in its outbox."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from sealpipe.credential import Credential
from sealpipe.doctor import Finding, failure, ok, warning
from sealpipe.doctor.settings import Settings
from sealpipe.errors import StateError
from sealpipe.state import files
from sealpipe.state.directory import current_run, make_private_directory, state_directory
from sealpipe.state.outbox import Outbox

_TRIAL = bytes(4096)


def check_state_directory(
    settings: Settings, environ: Mapping[str, str], credential: Credential | None
) -> Iterator[Finding]:
    """Folder and outbox. What is missing is made and written for a try, and taken away: the first share makes it."""
    try:
        folder = state_directory(environ, settings["state_dir"].usable())
        box = folder / "outbox"
        yield ok("state directory", f"{folder}, {_writable(box)}")
        left = Outbox(box, None).list(every_run=True)
    except StateError as error:
        yield failure("state directory", error)
        return
    if box.is_dir() and stat.S_IMODE(box.stat().st_mode) & 0o077:
        yield warning("state directory", f"{box} is open to others", f"chmod 700 {box}")
    if not left:
        yield ok("outbox", "empty")
        return
    ours = [entry for entry in left if entry.run == current_run(environ)]
    others = [entry for entry in left if credential is not None and entry.key_id != credential.key_id]
    told = [f"{len(left)} left, the oldest of {left[0].created_at:%Y-%m-%d %H:%M} UTC"]
    told += [f"{len(left) - len(ours)} from other CI runs"] if len(ours) < len(left) else []
    told += [f"{len(others)} created with another API key"] if others else []
    yield warning(
        "outbox", ", ".join(told), "`sealpipe resume` finishes them; `sealpipe resume --list --all` lists them"
    )


def _writable(box: Path) -> str:
    """How it stands with writing there, by doing it; StateError where that fails."""
    if os.path.lexists(box):
        found = box.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise StateError(f"{box} is not a directory owned by this user")
        _try(box, box)
        return f"mode {stat.S_IMODE(found.st_mode):04o}, writable"
    _try_beside(box)
    return "does not exist yet, can be created"


def _try_beside(box: Path) -> None:
    """Make the missing folders under another name, write there, and take all away.

    Not under their own: a command that starts meanwhile may find the folder, and lose it again.
    """
    there = next(parent for parent in box.parents if os.path.lexists(parent))
    trial = there / f".sealpipe-doctor-{secrets.token_hex(6)}"
    try:
        trial.mkdir(mode=0o700)
    except OSError as error:
        raise StateError(f"{box} cannot be created: {there}: {error.strerror}") from None
    try:
        try:
            folder = make_private_directory(trial / box.relative_to(there))
        except StateError as error:
            raise StateError(f"{box} cannot be created: {error.message}", remedy=error.remedy) from None
        _try(folder, box)
    finally:
        shutil.rmtree(trial, ignore_errors=True)


def _try(folder: Path, box: Path) -> None:
    path = folder / f".doctor-{secrets.token_hex(6)}"
    try:
        files.create(path, lambda: [_TRIAL])  # it syncs the file and the folder
        files.remove(path)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise StateError(f"{box} cannot be written: {error.strerror}") from None
