"""The audit log: one JSON line for each event, append-only, each chained to the one before it.

[audit]
file = "/var/log/sealpipe/audit.jsonl"
required = true                        # refuse an action that cannot be logged first
key = "file:/etc/sealpipe/audit.key"   # or env:NAME; at least 16 bytes
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from sealpipe.plugin import NotConfiguredError, PluginError, hookimpl
from sealpipe_plugins.audit import chain

_KNOWN: Final = ("file", "required", "key")
_MIN_KEY, _MAX_KEY = 16, 4096
_LOCK_TIMEOUT: Final = 10.0
"""Seconds to wait for other writers of the same file."""
_OPEN_ATTEMPTS: Final = 5
"""How often to reopen the file if log rotation replaces it at the same time."""

heads: dict[Path, str] = {}
"""The head of every file that this process has written to."""


@hookimpl
def sealpipe_event(event: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    """Add a line. Raises PluginError if that fails and `required` is set."""
    file, required, key = _read_settings(config)
    try:
        heads[file] = _append_line(file, event, key)
    except OSError as error:
        if required:
            raise PluginError(
                f"the audit log {file} cannot be written: {error.strerror}",
                locator="audit:",
                remedy="fix this first: the audit is required",
            ) from None


def _read_settings(config: Mapping[str, Any]) -> tuple[Path, bool, bytes | None]:
    file, required, key = config.get("file"), config.get("required", False), config.get("key")
    if not isinstance(file, str) or not Path(file).is_absolute() or not isinstance(required, bool):
        raise NotConfiguredError(
            "[audit] needs `file` (an absolute path), and `required` must be true or false",
            remedy="correct [audit]",
        )
    if unknown := sorted(config.keys() - set(_KNOWN)):
        raise NotConfiguredError(
            f"unknown setting in [audit]: {unknown[0][:40]!r}",
            remedy=f"the settings are {', '.join(_KNOWN)}",
        )
    return Path(file), required, None if key is None else read_key(key)


def read_key(reference: object) -> bytes:
    """Return the key of `file:/PATH` or `env:NAME`, without one final newline.

    Raises NotConfiguredError.
    """
    name, _, body = reference.partition(":") if isinstance(reference, str) else ("", "", "")
    reason = "write file:/PATH or env:NAME"
    if name == "env" and body:
        return _check_key_length(os.environb.get(os.fsencode(body), b""), f"env:{body[:80]}")
    if name == "file" and Path(body).is_absolute():
        try:
            with Path(body).open("rb") as file:
                return _check_key_length(file.read(_MAX_KEY).removesuffix(b"\n"), f"file:{body}")
        except OSError as error:
            reason = f"{body} cannot be read: {error.strerror}"
    raise NotConfiguredError(
        f"the audit's key cannot be used: {reason}",
        locator="audit:",
        remedy="correct `key` in [audit]",
    )


def _check_key_length(key: bytes, where: str) -> bytes:
    if len(key) >= _MIN_KEY:
        return key
    if not key:
        raise NotConfiguredError(
            f"the audit's key is missing: {where} is empty, or not set",
            locator="audit:",
            remedy="set it to the key; `openssl rand -hex 32` creates a new one",
        )
    raise NotConfiguredError(
        f"the audit's key in {where} has fewer than {_MIN_KEY} bytes",
        locator="audit:",
        remedy="create one with `openssl rand -hex 32`",
    )


def _append_line(file: Path, event: Mapping[str, Any], key: bytes | None) -> str:
    """Append one chained line, flush it to disk and return the head. Raises OSError."""
    with _open_locked(file) as descriptor:
        size = os.fstat(descriptor).st_size
        previous, torn = _read_last(descriptor, size)
        link, line = chain.make_link(event, previous, torn, key)
        # A truncated line, or a complete one without a newline, first gets its newline.
        separator = b"\n" if size and os.pread(descriptor, 1, size - 1) != b"\n" else b""
        try:
            if os.write(descriptor, separator + line) < len(separator + line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(descriptor)
        except OSError:
            # An append-only file cannot drop it, and the next writer records it.
            with suppress(OSError):
                os.ftruncate(descriptor, size)
            raise
        return link.head


def _read_last(descriptor: int, size: int) -> tuple[chain.Link | None, bytes]:
    """Return the last link and the truncated line after it. Reads only the file's end."""
    length = min(size, 2 * chain.MAX_LINE)
    last_link, torn = chain.find_last(os.pread(descriptor, length, size - length))
    if last_link is None and length < size:
        raise OSError(errno.EBADMSG, "it does not end with a line of an audit log")
    return last_link, torn


@contextmanager
def _open_locked(file: Path) -> Iterator[int]:
    """Open the file for reading and appending, and lock it. Raises OSError."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    end = time.monotonic() + _LOCK_TIMEOUT
    for _ in range(_OPEN_ATTEMPTS):
        descriptor = os.open(file, flags, 0o600)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "it is not a regular file")
            _lock(descriptor, end)
            if _is_same_file(file, status):
                yield descriptor
                return
        finally:
            os.close(descriptor)
    raise OSError(errno.EAGAIN, "it keeps being replaced")


def _lock(descriptor: int, end: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise OSError(errno.EAGAIN, "another process holds its lock") from None
            time.sleep(0.01)
        else:
            return


def _is_same_file(file: Path, status: os.stat_result) -> bool:
    try:
        current = os.lstat(file)
    except FileNotFoundError:
        return False
    return (current.st_dev, current.st_ino) == (status.st_dev, status.st_ino)
