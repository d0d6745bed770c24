"""Sends the lines of an audit log to a webhook. The log is the queue.

A POST has lines exactly as they are in the log, oldest first. `FILE.sent` says how far the webhook
has accepted them, so a later command sends what it did not accept. If a response is lost, its lines
are sent once more.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

from sealpipe.plugin import (
    BackendAuthError,
    Context,
    NotConfiguredError,
    PluginError,
    Secret,
    UnavailableError,
)
from sealpipe_plugins.audit.chain import MAX_LINE, parse_line, sha256_hex
from sealpipe_plugins.audit.settings import Webhook, read_settings
from sealpipe_plugins.http_api import Endpoint
from sealpipe_plugins.http_errors import Refusals, require_success

_MAX_BODY: Final = 2 * MAX_LINE
"""Maximum bytes of a POST: this much always holds a whole line."""
_MAX_SECONDS: Final = 30.0
"""Seconds that a POST may take, with the wait for other processes that send."""
_MAX_REPLY: Final = 64 * 1024
_POSITION_LENGTH: Final = 160
_DIGESTED: Final = 128
"""How many bytes before a position tell that it is this log's: a line's mark and more."""

_TOKEN_REFUSED: Final = (BackendAuthError, "refused the token", "check `token` in [audit.webhook]")
_NOTHING_THERE: Final = (
    NotConfiguredError,
    "has nothing at this address",
    "check `url` in [audit.webhook]",
)
_REFUSALS: Final[Refusals] = {
    **dict.fromkeys((401, 403), _TOKEN_REFUSED),
    **dict.fromkeys((404, 405, 410), _NOTHING_THERE),
}


def send(config: Mapping[str, Any], context: Context) -> tuple[Path, int] | None:
    """Send what was not sent: returns the log and the number of lines; None without a webhook.

    Raises PluginError.
    """
    settings = read_settings(config)
    if settings.webhook is None:
        return None
    if not settings.file.exists():
        return settings.file, 0  # nothing has been logged
    return settings.file, sum(send_lines(settings.file, settings.webhook, context))


def send_lines(
    file: Path, webhook: Webhook, context: Context, end: float = math.inf
) -> Iterator[int]:
    """Send what `file` has and the webhook has not, in several POSTs if it is much.

    Yields the number of lines in each. `end` is in seconds of the monotonic clock. Raises
    PluginError: what the webhook has accepted stays sent.
    """
    try:
        yield from _send_batches(file, _make_endpoint(webhook, context), context, end)
        return
    except OSError as error:
        failure = PluginError(
            f"the audit log {file} cannot be sent: {error.strerror}: {error.filename or file}",
            locator="audit:",
            remedy=f"let who runs sealpipe read {file}, and write {file}.sent",
        )
    raise failure


def _make_endpoint(webhook: Webhook, context: Context) -> Endpoint:
    headers: dict[str, str | Secret] = {
        "content-type": "application/x-ndjson",
        # A connection that is kept may be closed when the next line is sent, minutes later.
        "connection": "close",
    }
    if webhook.authorization is not None:
        headers["authorization"] = webhook.authorization
    return Endpoint(
        context,
        "the audit's webhook",
        webhook.url,
        setting="webhook.url",
        headers=headers,
        hidden=True,
        limit=_MAX_REPLY,
    )


def _send_batches(file: Path, endpoint: Endpoint, context: Context, end: float) -> Iterator[int]:
    with file.open("rb") as log:
        has_more = True
        while has_more:
            batch_end = min(end, time.monotonic() + _MAX_SECONDS)
            with _open_position(file, log, batch_end) as position:
                offset = _read_offset(position, log)
                read, lines = _read_batch(log, offset)
                has_more = bool(read)
                if lines:
                    _post(endpoint, context, b"".join(lines), batch_end - time.monotonic())
                if read:
                    _write_offset(position, log, offset + read)
            if lines:
                yield len(lines)


def _post(endpoint: Endpoint, context: Context, body: bytes, seconds: float) -> None:
    if seconds <= 0:
        raise UnavailableError(
            f"the audit's webhook at {endpoint.host} did not get all lines in time",
            remedy="run `sealpipe audit send`",
        )
    with context.network.exchange(seconds):
        require_success(endpoint.request("POST", "", body, timeout=seconds), _REFUSALS)


def _read_batch(log: BinaryIO, offset: int) -> tuple[int, list[bytes]]:
    """Return how many bytes were read, up to a line's end, and the chain's lines in them.

    What is no line of the chain (one that was truncated, which the next one records) is left out.
    """
    log.seek(offset)
    content = log.read(_MAX_BODY)
    end = content.rfind(b"\n") + 1
    if not end:  # an unfinished line; or something endless that is none of ours
        return (len(content) if len(content) == _MAX_BODY else 0), []
    lines = content[:end].splitlines(keepends=True)
    return end, [line for line in lines if parse_line(line.rstrip(b"\n")) is not None]


@contextmanager
def _open_position(file: Path, log: BinaryIO, end: float) -> Iterator[int]:
    """Open `FILE.sent`, with the log's permissions, and lock it: only one process sends.

    Raises OSError, and UnavailableError if others keep the lock until `end`.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    path = file.with_name(f"{file.name}.sent")
    descriptor = os.open(path, flags, 0o600)
    try:
        status, of_log = os.fstat(descriptor), os.fstat(log.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, f"{path.name} is not a regular file")
        if not status.st_size:
            with suppress(OSError):  # somebody else's: who made it has done this
                os.fchown(descriptor, -1, of_log.st_gid)
                os.fchmod(descriptor, of_log.st_mode & 0o660)
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise UnavailableError(
                        "another process is still sending the audit log",
                        remedy="run `sealpipe audit send` later",
                    ) from None
                time.sleep(0.01)
        yield descriptor
    finally:
        os.close(descriptor)


def _read_offset(position: int, log: BinaryIO) -> int:
    """Return where in the log to go on; 0 for a log that is another one, or was cut off."""
    try:
        members = json.loads(os.pread(position, 4096, 0))
        offset, before = members["offset"], members["before"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return 0
    size = os.fstat(log.fileno()).st_size
    if not isinstance(offset, int) or not 0 <= offset <= size:
        return 0
    return offset if before == _digest_before(log, offset) else 0


def _write_offset(position: int, log: BinaryIO, offset: int) -> None:
    members = {"offset": offset, "before": _digest_before(log, offset)}
    # Always as long: a kill before the last step leaves nothing of the position before.
    content = json.dumps(members).encode().ljust(_POSITION_LENGTH - 1) + b"\n"
    os.pwrite(position, content, 0)
    os.ftruncate(position, len(content))


def _digest_before(log: BinaryIO, offset: int) -> str:
    """Return the digest of what ends there: a line's own mark tells it from all others."""
    begin = max(offset - _DIGESTED, 0)
    return sha256_hex(os.pread(log.fileno(), offset - begin, begin))
