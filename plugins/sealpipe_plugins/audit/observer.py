"""The audit log: one JSON line for each event, append-only, each chained to the one before it.

[audit]
file = "/var/log/sealpipe/audit.jsonl"
required = true                        # refuse an action that cannot be logged first
key = "file:/etc/sealpipe/audit.key"   # or env:NAME; at least 16 bytes

[audit.webhook]                        # where the lines of many machines come together
url = "https://logs.example.com/audit"
token = "file:/etc/sealpipe/audit.token"
required = false
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
from socket import gethostname
from typing import Any, Final

from sealpipe.plugin import Context, PluginError, hookimpl
from sealpipe_plugins.audit import chain
from sealpipe_plugins.audit.settings import Webhook, read_settings

_SENDING_SECONDS: Final = {False: 2.0, True: 10.0}
"""Seconds that a command is held by a webhook, by whether it is required."""
_RETRY_AFTER: Final = 30.0
"""Seconds until a process tries a webhook again that failed and is not required."""
_LOCK_TIMEOUT: Final = 10.0
"""Seconds to wait for other writers of the same file."""
_OPEN_ATTEMPTS: Final = 5
"""How often to reopen the file if log rotation replaces it at the same time."""

heads: dict[Path, str] = {}
"""The head of every file that this process has written to."""
unsent: dict[Path, str] = {}
"""Why lines of a file were not sent to its webhook, since the last time that all were."""
_retry_at: dict[Path, float] = {}


@hookimpl
def sealpipe_event(event: Mapping[str, Any], config: Mapping[str, Any], context: Context) -> None:
    """Add a line, and send it. Raises PluginError if that fails and `required` is set."""
    settings = read_settings(config)
    file = settings.file
    try:
        heads[file] = _append_line(file, {"machine": gethostname(), **event}, settings.key)
    except OSError as error:
        if settings.required or (settings.webhook is not None and settings.webhook.required):
            raise PluginError(
                f"the audit log {file} cannot be written: {error.strerror}",
                locator="audit:",
                remedy="fix this first: the audit is required",
            ) from None
        return
    if settings.webhook is not None:
        _send_new(file, settings.webhook, context)


def _send_new(file: Path, webhook: Webhook, context: Context) -> None:
    """Send what was not sent, for as long as a command may be held. Raises if it is required."""
    now = time.monotonic()
    if not webhook.required and now < _retry_at.get(file, now):
        return
    from sealpipe_plugins.audit.webhook import send_lines  # an HTTP client

    try:
        for _ in send_lines(file, webhook, context, now + _SENDING_SECONDS[webhook.required]):
            pass
    except PluginError as error:
        if webhook.required:
            raise
        unsent[file], _retry_at[file] = error.message, time.monotonic() + _RETRY_AFTER
    else:
        unsent.pop(file, None)


def _append_line(file: Path, event: Mapping[str, Any], key: bytes | None) -> str:
    """Append one chained line, flush it to disk and return the head. Raises OSError."""
    with _open_locked(file) as descriptor:
        size = os.fstat(descriptor).st_size
        previous, torn = _read_last(descriptor, size)
        link, line = chain.make_link(event, previous, torn, key, os.urandom(8).hex())
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
