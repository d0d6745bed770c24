"""Files that sinks write: read without following links, and replaced atomically."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from sealpipe.plugin import (
    PLAINTEXT_LIMIT,
    AccessDeniedError,
    Context,
    Locator,
    Mode,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    SinkField,
    UnavailableError,
    UnsupportedError,
    WriteConflictError,
)

_TRIES = 100
"""Attempts while others change the file.

The loop of `confirm` is for networks: no outcome is unknown here, and no attempt has to wait."""
_NO_NAMES = ("", ".", "..")
_REPLACED_BY = {errno.ELOOP: stat.S_IFLNK, errno.ENXIO: stat.S_IFSOCK}
"""The kind of file that replaced a path, by the error of opening it."""
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FileState(NamedTuple):
    """A regular file: its content, and whether only this user can read it."""

    content: bytes
    private: bool


Decide = Callable[[bytes | None], bytes | None]
"""Maps a file's content (None: no file) to the content to write; None to write nothing."""


def parse_path(locator: Locator) -> Path:
    """Return the path of a target. Raises ReferenceValueError if it cannot be a file."""
    body = locator.body
    if not body.strip() or not body.isprintable() or body.rpartition("/")[2] in _NO_NAMES:
        raise ReferenceValueError(
            f"{locator.name}: names no file", remedy=f"write {locator.name}:PATH"
        )
    return Path(body)


def fields_by_key(fields: Sequence[SinkField]) -> dict[str, SinkField]:
    """Return the fields by key. Raises ReferenceValueError for a repeated key, or for no field."""
    by_key = {field.key: field for field in fields}
    if len(by_key) != len(fields) or not fields:
        raise ReferenceValueError(
            "every value needs a key of its own", remedy="name each key once: #KEY=PROMPT"
        )
    return by_key


def encode_value(field: SinkField) -> bytes:
    """Return a value's bytes. Raises UnsupportedError for a lone surrogate."""
    with suppress(UnicodeEncodeError):
        return field.value.reveal_bytes()
    raise UnsupportedError(
        "a value has a lone surrogate and cannot be written as UTF-8", remedy="ask for it again"
    )


def read_state(locator: Locator, path: Path, *, limit: int = PLAINTEXT_LIMIT) -> FileState | None:
    """Read a file of at most `limit` bytes, or return None.

    Raises WriteConflictError for a link or a folder.
    """
    with translate_errors(locator):
        try:
            # checked before it is opened, because opening a device may have side effects
            _require_regular(locator, os.lstat(path).st_mode)
            descriptor = _open(locator, path)
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            content = file.read(limit + 1)
    if len(content) > limit:
        raise UnsupportedError(
            f"{locator} has more than {limit // 1024 // 1024} MiB",
            remedy="remove it, or name another file",
        )
    return FileState(
        content, status.st_uid == os.geteuid() and not stat.S_IMODE(status.st_mode) & 0o077
    )


def write_when_needed(
    context: Context,
    locator: Locator,
    path: Path,
    mode: Mode,
    decide: Decide,
    *,
    limit: int = PLAINTEXT_LIMIT,
) -> bool:
    """Write what `decide` returns, even under concurrent writes.

    Return whether the file already had it.
    """
    for _ in range(_TRIES):
        existing = read_state(locator, path, limit=limit)
        content = decide(None if existing is None else existing.content)
        if content is None:
            if existing is None or existing.private:
                _flush(path)  # an interrupted attempt may not have flushed it
                return True
            if mode == "create":
                raise WriteConflictError(
                    f"{locator} has this content already, but other users can read it or own it",
                    remedy="make it private (chmod 600), or use --mode replace",
                )
            content = existing.content
        with translate_errors(locator):
            if _write(context, path, content, existing):
                return False
    raise UnavailableError(
        f"{locator} keeps being changed by others", remedy="run it again when they are done"
    )


def _write(context: Context, path: Path, content: bytes, existing: FileState | None) -> bool:
    if existing is not None:
        return context.replace_file(path, content, existing.content)
    try:
        context.new_file(path, content)
    except FileExistsError:
        return False  # another writer was faster: read again
    return True


def _open(locator: Locator, path: Path) -> int:
    try:
        descriptor = os.open(path, _READ_FLAGS)
    except OSError as error:
        if error.errno in _REPLACED_BY:
            _require_regular(locator, _REPLACED_BY[error.errno])
        raise
    try:
        _require_regular(locator, os.fstat(descriptor).st_mode)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _require_regular(locator: Locator, mode: int) -> None:
    if stat.S_ISLNK(mode):
        raise WriteConflictError(
            f"{locator} is a symbolic link, which is not followed",
            remedy="name the file it points to",
        )
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
        raise WriteConflictError(f"{locator} is {what}", remedy="name a file or an unused path")


def _flush(path: Path) -> None:
    for each, flags in (
        (path, _READ_FLAGS),
        (path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC),
    ):
        with suppress(OSError):  # for example a read-only file system: nothing to flush
            descriptor = os.open(each, flags)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


@contextmanager
def translate_errors(locator: Locator) -> Iterator[None]:
    """Translate OSError into errors of the plugin contract."""
    try:
        yield
        return
    except (FileNotFoundError, NotADirectoryError):
        home_hint = (
            "~ is not expanded here: write $HOME/... in the shell"
            if locator.body.startswith("~")
            else ""
        )
        translated: PluginError = SecretNotFoundError(
            f"the folder of {locator} does not exist", remedy=home_hint or "create the folder"
        )
    except PermissionError:
        translated = AccessDeniedError(
            f"this user has no permission to write {locator}",
            remedy="give this user write permission for its folder",
        )
    except TimeoutError:
        translated = UnavailableError(
            f"others are writing in the folder of {locator}",
            remedy="run it again when they are done",
        )
    except OSError as error:
        translated = _FAILURES.get(error.errno or 0, _other_error)(locator, error)
    raise translated


def _other_error(locator: Locator, error: OSError) -> PluginError:
    reason = error.strerror or type(error).__name__
    return PluginError(f"{locator} cannot be written: {reason}", remedy="check its disk")


def _disk_full_error(locator: Locator, _: OSError) -> PluginError:
    return PluginError(
        f"the disk has no room for {locator}", remedy="free some space; nothing was changed"
    )


def _read_only_error(locator: Locator, _: OSError) -> PluginError:
    return PluginError(
        f"the file system of {locator} is read-only", remedy="name a path on a writable volume"
    )


def _no_locks_error(locator: Locator, _: OSError) -> PluginError:
    return UnsupportedError(
        f"the folder of {locator} cannot be locked, so existing files are not replaced",
        remedy="name a path on a local disk, or a new file",
    )


def _name_too_long_error(locator: Locator, _: OSError) -> PluginError:
    return ReferenceValueError(f"{locator}: the name is too long", remedy="name a shorter path")


_FAILURES: dict[int, Callable[[Locator, OSError], PluginError]] = {
    errno.ENOSPC: _disk_full_error,
    errno.EDQUOT: _disk_full_error,
    errno.EROFS: _read_only_error,
    errno.ENOLCK: _no_locks_error,
    errno.ENAMETOOLONG: _name_too_long_error,
}
