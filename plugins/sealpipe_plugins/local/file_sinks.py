"""`file:PATH`: one value as a 0600 file, byte for byte.

`dir:FOLDER`: each value as such a file, named by its key.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sealpipe.plugin import (
    Locator,
    Mode,
    ReferenceValueError,
    Sink,
    SinkField,
    WriteConflictError,
    WriteResult,
    merge_fields,
)
from sealpipe_plugins.local import files

_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_DESCRIPTOR_PATHS = Path("/proc/self/fd")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class FileSink(Sink):
    """Files on this machine. They store no marker: equal content counts as stored."""

    def describe(self, locator: Locator, mode: Mode) -> str:
        """Describe the write."""
        path = files.parse_path(locator)
        return (
            f"write the new file {path}"
            if mode == "create"
            else f"write {path}, replacing what is there"
        )

    def put(
        self,
        locator: Locator,
        fields: Sequence[SinkField],
        *,
        mode: Mode,
        marker: str,  # noqa: ARG002
    ) -> WriteResult:
        """Write the file and read it back."""
        path = files.parse_path(locator)
        if len(fields) != 1:
            raise ReferenceValueError(
                f"{locator} holds one value", remedy="name one prompt, or use dir: or dotenv:"
            )
        content = files.encode_value(fields[0])
        already = files.write_when_needed(
            self.context, locator, path, mode, lambda existing: new_content(existing, content, mode)
        )
        confirm_content(locator, files.read_state(locator, path), content)
        return WriteResult(locator, already=already)


class DirSink(Sink):
    """Private folders on this machine. Files in them are never removed."""

    def describe(self, locator: Locator, mode: Mode) -> str:
        """Describe the write."""
        folder = _parse_folder(locator)
        existing_note = (
            "if none exists" if mode == "create" else "replacing those of the same names"
        )
        return f"write files into the folder {folder}, each named by its key, {existing_note}"

    def put(
        self,
        locator: Locator,
        fields: Sequence[SinkField],
        *,
        mode: Mode,
        marker: str,  # noqa: ARG002
    ) -> WriteResult:
        """Check all files first, then write and read them back."""
        folder = _parse_folder(locator)
        contents = {
            key: files.encode_value(field) for key, field in files.fields_by_key(fields).items()
        }
        for key in contents:
            _check_key(key)
        with _open_folder(locator, folder) as folder_path:
            targets = {key: locator._replace(text=f"{locator}/{key}") for key in contents}
            for key, content in contents.items():
                existing = files.read_state(targets[key], folder_path / key)
                new_content(None if existing is None else existing.content, content, mode)
            already = True
            for key, content in contents.items():
                already &= files.write_when_needed(
                    self.context, targets[key], folder_path / key, mode, _make_decide(content, mode)
                )
            for key, content in contents.items():
                confirm_content(
                    targets[key], files.read_state(targets[key], folder_path / key), content
                )
        return WriteResult(locator, already=already)


def new_content(existing: bytes | None, content: bytes, mode: Mode) -> bytes | None:
    """Return the content to write; None if the file already has it. Raises WriteConflictError."""
    after = merge_fields(
        None if existing is None else {"": existing}, {"": content}, mode=mode, marked=False
    )
    return None if after is None else after[""]


def confirm_content(locator: Locator, file: files.FileState | None, content: bytes) -> None:
    """Raise WriteConflictError if the file does not have the content that was written."""
    if file is None or file.content != content:
        raise WriteConflictError(
            f"{locator} was changed by another process while it was written",
            remedy="check what else writes to it",
        )


def _make_decide(content: bytes, mode: Mode) -> files.Decide:
    return lambda existing: new_content(existing, content, mode)


def _parse_folder(locator: Locator) -> Path:
    if not locator.body.strip() or not locator.body.isprintable():
        raise ReferenceValueError(
            f"{locator.name}: names no folder", remedy=f"write {locator.name}:FOLDER#KEY=PROMPT"
        )
    return Path(locator.body)


def _check_key(key: str) -> None:
    if not key:
        raise ReferenceValueError(
            "each value of a folder needs a key", remedy="name the file to store it in: #KEY=PROMPT"
        )
    if not _KEY.fullmatch(key):
        raise ReferenceValueError(
            "a key is not a valid file name",
            remedy=(
                "use at most 100 letters, digits, . _ or -, not . or - first: #db-password=PROMPT"
            ),
        )


@contextmanager
def _open_folder(locator: Locator, folder: Path) -> Iterator[Path]:
    """Create the folder if missing; yield a path that is valid even if it is replaced."""
    with files.translate_errors(locator):
        for each in reversed((folder, *folder.parents)):
            _make_folder(each)
        status = os.lstat(folder)
        if not stat.S_ISDIR(status.st_mode):
            what = (
                "a symbolic link, which is not followed"
                if stat.S_ISLNK(status.st_mode)
                else "not a folder"
            )
            raise WriteConflictError(
                f"{locator} is {what}", remedy="name a folder or an unused path"
            )
        descriptor = os.open(folder, _FOLDER)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid():
            raise WriteConflictError(
                f"{locator} belongs to another user",
                remedy="name a folder that this user owns, or a new one",
            )
        if stat.S_IMODE(status.st_mode) & 0o022:
            raise WriteConflictError(
                f"other users can write to {locator}",
                remedy="chmod go-w the folder, or name a new one",
            )
        # Only Linux has such paths; elsewhere a folder that replaced this one would be written to.
        yield _DESCRIPTOR_PATHS / str(descriptor) if _DESCRIPTOR_PATHS.exists() else folder
    finally:
        os.close(descriptor)


def _make_folder(folder: Path) -> None:
    """Create one private folder, whatever the umask, and flush its directory entry to disk."""
    if os.path.lexists(folder):
        return
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return  # another process created it: check it like an existing one
    folder.chmod(0o700)
    parent = os.open(folder.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)
