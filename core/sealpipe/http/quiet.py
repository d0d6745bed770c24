"""httpcore logs what a peer answers as it came: an answer that repeats a credential would put it into a log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ours = ContextVar("_ours", default=False)


def _is_not_ours(_: logging.LogRecord) -> bool:
    return not _ours.get()


logging.getLogger("httpcore.http11").addFilter(_is_not_ours)  # all that is read from a peer is logged there


@contextmanager
def quiet() -> Iterator[None]:
    """No answer is logged by httpcore here meanwhile; what the program does with httpcore elsewhere, is."""
    before = _ours.set(True)
    try:
        yield
    finally:
        _ours.reset(before)
