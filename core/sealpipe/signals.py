"""SIGINT and SIGTERM.

At any moment they end a command with one line, and exit code 128 plus the signal's number.

A signal that is ignored when the command starts stays ignored. Loaded before click, so it imports
little.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

GRACE = 1.0
"""Seconds after the first signal during which further signals are ignored (`timeout` sends two),
and the limit for clean-ups at the end of the process.
"""

_LINE = b"sealpipe: interrupted\n"
_interrupted: tuple[int, float] | None = None
"""The number of the first signal, and when it arrived (monotonic); None before that."""


class Interrupted(BaseException):
    """SIGINT or SIGTERM.

    It may be raised anywhere: what is on disk is consistent at every moment.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def exit_on_signals() -> None:
    """End the process at once on a signal from now on.

    Nothing has begun, or everything is finished.
    """
    _handle(_exit)


def raise_on_signals() -> None:
    """Raise `Interrupted` once on a signal from now on.

    click would replace a KeyboardInterrupt, and lose its notes.
    """
    _handle(_raise)


def call_on_signal(callback: Callable[[], object]) -> None:
    """Call this on the first signal from now on, instead of raising.

    The others are ignored for GRACE seconds; then the next one ends the process.
    """

    def handle(number: int, _frame: FrameType | None) -> None:
        if _is_first(number):
            callback()

    _handle(handle)


@contextmanager
def open_wakeup() -> Iterator[int]:
    """Give a descriptor that can be read from once a signal has come, in the main thread.

    What waits for it misses no signal, not even one just before the wait.
    """
    reading, writing = os.pipe()
    for end in (reading, writing):
        os.set_blocking(end, False)
    previous = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(previous)
        for end in (reading, writing):
            os.close(end)


def find_first() -> int | None:
    """Return the number of the first signal that was raised or called for; None before that."""
    return None if _interrupted is None else _interrupted[0]


def exit_without_threads(code: int) -> NoReturn:
    """End the process after its clean-ups (`atexit`), without waiting for its threads."""
    try:
        _handle(signal.SIG_IGN)
        from threading import Thread

        cleanup = Thread(target=_clean_up, daemon=True)  # waits at most GRACE seconds for clean-ups
        cleanup.start()
        cleanup.join(GRACE)
    finally:
        os._exit(code)


def _clean_up() -> None:
    atexit._run_exitfuncs()  # the only way to run them without first waiting for all threads
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
    if _is_first(number):
        raise Interrupted(number)


def _is_first(number: int) -> bool:
    """Whether no signal came before. A later one ends the process, but for those within GRACE."""
    global _interrupted
    if _interrupted is None:
        _interrupted = (number, time.monotonic())
        return True
    first, at = _interrupted
    if time.monotonic() - at > GRACE:  # after a second signal, nothing that hangs is waited for
        with suppress(OSError):
            os.write(2, _LINE)
        exit_without_threads(128 + first)
    return False
