"""Reading to the end, once and into one piece of memory."""

from __future__ import annotations

from typing import BinaryIO

from sealpipe.plugin import PLAINTEXT_LIMIT, Locator, PayloadTooLargeError


def read_whole(stream: BinaryIO, locator: Locator) -> bytes:
    """All that is there. PayloadTooLargeError where that is more than can be sealed: the rest is not read."""
    data = stream.read(PLAINTEXT_LIMIT + 1)
    if len(data) > PLAINTEXT_LIMIT:
        raise PayloadTooLargeError(f"{locator} has more than {PLAINTEXT_LIMIT // 1024 // 1024} MiB")
    return data
