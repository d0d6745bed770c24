"""What SIGINT and SIGTERM do to a command: it ends with one line and 128 + the number, at whatever moment they come.

A signal that is ignored when the command starts stays ignored. Loaded before click: it imports little.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn

GRACE = 1.0
"""Seconds after the first signal in which more of them mean the same one (`timeout` sends two), and in which clean-ups
at the process's end have to be done."""

_LINE = b"sealpipe: interrupted\n"
_interrupted: tuple[int, float] | None = None
"""The first signal's number, and when it came (monotonic); None as long as there was none."""


class Interrupted(BaseException):
    """SIGINT or SIGTERM: what is on disk is whole at every moment, so the place where it strikes does not matter."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def exit_on_signals() -> None:
    """End the process at once from now on: nothing has begun yet, or all is done."""
    _handle(_exit)


def raise_on_signals() -> None:
    """Raise `Interrupted` from now on, once: not KeyboardInterrupt, which click replaces, and its notes with it."""
    _handle(_raise)


def was_interrupted() -> bool:
    """Whether `Interrupted` was raised."""
    return _interrupted is not None


def exit_without_threads(code: int) -> NoReturn:
    """End the process after its clean-ups (`atexit`), but without its threads: what hangs in one is not waited for."""
    try:
        _handle(signal.SIG_IGN)
        from threading import Thread

        cleanup = Thread(target=_clean_up, daemon=True)  # no clean-up is waited for longer than GRACE either
        cleanup.start()
        cleanup.join(GRACE)
    finally:
        os._exit(code)


def _clean_up() -> None:
    import atexit

    atexit._run_exitfuncs()  # the only way to have them without waiting for all threads before
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _handle(handler: Callable[[int, FrameType | None], Any] | signal.Handlers) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _exit(number: int, _frame: FrameType | None) -> NoReturn:
    try:
        os.write(2, _LINE)
    finally:
        os._exit(128 + number)


def _raise(number: int, _frame: FrameType | None) -> None:
    global _interrupted
    if _interrupted is None:
        _interrupted = (number, time.monotonic())
        raise Interrupted(number)
    first, at = _interrupted
    if time.monotonic() - at > GRACE:  # whoever insists does not wait for what hangs
        with suppress(OSError):
            os.write(2, _LINE)
        exit_without_threads(128 + first)
