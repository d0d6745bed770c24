"""`prompt:TEXT`: what a person types at the terminal, without echo.

It works even if standard input is redirected. Unix only.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

from sealpipe.plugin import (
    Document,
    Locator,
    SecretNotFoundError,
    Source,
    UnsupportedError,
    detect_ci_system,
)

TERMINAL: Final = "/dev/tty"
"""The terminal that this process was started from."""

_ENDING_SIGNALS: Final = (signal.SIGTSTP, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM)
"""Signals that stop or end a process by default: echo must be restored before that."""
_PASTE_WINDOW: Final = 0.05
"""Seconds within which the second line of a paste arrives."""
_LOCK: Final = threading.Lock()
_ELSEWHERE = "use another source: env:NAME, file:PATH, stdin: or a store"


class PromptSource(Source):
    """The terminal of this process. Each reference prompts once."""

    def fetch(self, locator: Locator) -> Document:
        """Return the typed text, without the newline.

        Raises UnsupportedError without a terminal, and in CI.
        """
        if detect_ci_system(self.context.environ) is not None:
            raise UnsupportedError(
                "prompt: needs a person at a terminal, and this is a CI job", remedy=_ELSEWHERE
            )
        try:
            typed = read_secret_line(f"{_question(locator)} (not shown): ")
        except OSError:
            typed = None
        except InputTooLongError:
            raise UnsupportedError(
                "the input is longer than a line of a terminal; nothing was read",
                remedy="put it into a file and use file:PATH",
            ) from None
        if typed is None:
            raise UnsupportedError(
                "prompt: needs a terminal, and this process has none", remedy=_ELSEWHERE
            )
        if not typed:
            raise SecretNotFoundError("nothing was typed", remedy="run it again and type the value")
        return Document(typed)


def _question(locator: Locator) -> str:
    """Return the prompt without control characters."""
    return (
        "".join(character for character in locator.body if character.isprintable()).strip()
        or "Secret"
    )


class InputTooLongError(Exception):
    """The input is longer than the terminal's line limit."""


def read_secret_line(prompt: str) -> bytes:
    """Prompt and return the typed line without its newline.

    Echo is always restored. Raises OSError without a terminal, InputTooLongError.
    """
    with _LOCK:
        descriptor = os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            return _Prompt(descriptor, prompt).ask()
        except termios.error as error:
            raise OSError(*error.args) from None
        finally:
            os.close(descriptor)


class _Prompt:
    """One prompt. In the main thread, it handles signals while it waits."""

    def __init__(self, descriptor: int, prompt: str) -> None:
        self._descriptor = descriptor
        self._prompt = prompt.encode("utf-8", "backslashreplace")
        self._shown: list[Any] = termios.tcgetattr(descriptor)
        self._hidden = [*self._shown]
        self._hidden[0] |= termios.ICRNL
        self._hidden[3] |= termios.ICANON | termios.ISIG
        self._hidden[3] &= ~(termios.ECHO | termios.ECHONL)

    def ask(self) -> bytes:
        """Prompt and read one line."""
        previous = {}
        try:
            if threading.current_thread() is threading.main_thread():
                for number in _ENDING_SIGNALS:
                    if signal.getsignal(number) is signal.SIG_DFL:
                        previous[number] = signal.signal(number, self._handle_signal)
            self._hide()
            return self._read()
        finally:
            self._show()
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _hide(self) -> None:
        termios.tcsetattr(self._descriptor, termios.TCSAFLUSH, self._hidden)
        os.write(self._descriptor, self._prompt)

    def _show(self) -> None:
        """Restore echo and discard pending input, which a shell would run as a command."""
        termios.tcsetattr(self._descriptor, termios.TCSAFLUSH, self._shown)
        os.write(self._descriptor, b"\n")

    def _handle_signal(self, number: int, _frame: FrameType | None) -> None:
        """Restore the terminal, deliver the signal, and prompt again if the process continues."""
        self._show()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        signal.signal(number, self._handle_signal)
        self._hide()

    def _read(self) -> bytes:
        typed = b""
        with _signals_as_bytes() as signals:
            while not typed.endswith(b"\n"):
                ready, _, _ = select.select([self._descriptor, *signals], [], [])
                if self._descriptor not in ready:
                    os.read(signals[0], 512)  # Python has called the handler by now
                    continue
                part = os.read(self._descriptor, 65_536)
                if not part:
                    break
                typed += part
        has_more, _, _ = select.select(
            [self._descriptor], [], [], _PASTE_WINDOW if typed.endswith(b"\n") else 0
        )
        if has_more or len(typed.rstrip(b"\n")) >= _max_line(self._descriptor):
            raise InputTooLongError
        return typed.removesuffix(b"\n")


@contextmanager
def _signals_as_bytes() -> Iterator[list[int]]:
    """Yield a descriptor that becomes readable on every signal; nothing outside the main thread.

    Otherwise a signal just before a blocking read would be noticed only after the read.
    """
    if threading.current_thread() is not threading.main_thread():
        yield []
        return
    reading, writing = os.pipe()
    for descriptor_end in (reading, writing):
        os.set_blocking(descriptor_end, False)
    previous = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield [reading]
    finally:
        signal.set_wakeup_fd(previous)
        os.close(reading)
        os.close(writing)


def _max_line(descriptor: int) -> int:
    """Return the line length above which a terminal silently drops input."""
    return 4095 if sys.platform == "linux" else os.fpathconf(descriptor, "PC_MAX_CANON") - 1
