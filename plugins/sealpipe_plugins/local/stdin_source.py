"""`stdin:`: standard input, read to its end, once."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import BinaryIO

from sealpipe.plugin import (
    Document,
    Locator,
    ReferenceValueError,
    SecretNotFoundError,
    Source,
    UnsupportedError,
    WriteConflictError,
    refuse_process_file,
)
from sealpipe_plugins.local.file_source import read_whole

_REMEDY = "pipe the value in: produce-it | sealpipe share -f LABEL=stdin:"


class StdinSource(Source):
    """What is piped into this process."""

    read = False

    def fetch(self, locator: Locator) -> Document:
        """The bytes, exactly. A terminal is refused: what is typed there is seen, and waits for ever."""
        if locator.body:
            raise ReferenceValueError("stdin: takes nothing after its colon", remedy="write stdin:")
        stream = self.context.stdin
        if stream is None or stream.closed:
            raise SecretNotFoundError("standard input is closed", remedy=_REMEDY)
        if stream.isatty():
            raise UnsupportedError("standard input is a terminal, nothing is piped in", remedy=_REMEDY)
        _refuse_process_file(stream, locator)
        if self.read:
            raise WriteConflictError("standard input was read already", remedy="name stdin: once")
        self.read = True
        return Document(read_whole(stream, locator))


def _refuse_process_file(stream: BinaryIO, locator: Locator) -> None:
    """`< /proc/self/environ` is as little shared as `file:/proc/self/environ`."""
    descriptor = -1
    with suppress(io.UnsupportedOperation, OSError, AttributeError):  # a stream in memory has none
        descriptor = stream.fileno()
    if descriptor >= 0:
        refuse_process_file(descriptor, locator)
