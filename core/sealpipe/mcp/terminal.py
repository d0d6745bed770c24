"""Asks a person on the terminal that started the server, where the client cannot ask them."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
from contextlib import suppress
from typing import Final

TIMEOUT: Final = 120.0
"""Seconds for an answer. None is a no."""
_TERMINAL: Final = "/dev/tty"
_MAX_LINE: Final = 1000
_turn = asyncio.Lock()


async def ask(question: str) -> bool | None:
    """Ask, and return whether the person typed `yes`; None if there is no terminal to ask on.

    There is one only if stderr is a terminal, and this process is in its foreground: not where a
    client has started it.
    """
    async with _turn:  # one question at a time
        descriptor = _open()
        if descriptor is None:
            return None
        try:
            termios.tcflush(descriptor, termios.TCIFLUSH)  # what was typed before is no answer
            os.write(
                descriptor, f"{question}\nType yes to allow it: ".encode(errors="backslashreplace")
            )
            return await _read_line(descriptor) == "yes"
        except OSError:
            return None
        finally:
            os.close(descriptor)


def _open() -> int | None:
    if sys.stderr is None or not sys.stderr.isatty():
        return None
    descriptor = -1
    with suppress(OSError):
        descriptor = os.open(_TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC | os.O_NONBLOCK)
        # Reading in the background would stop the process.
        if os.tcgetpgrp(descriptor) == os.getpgrp():
            return descriptor
    if descriptor >= 0:
        os.close(descriptor)
    return None


async def _read_line(descriptor: int) -> str:
    """Read a line; empty if there is none in time."""
    loop = asyncio.get_running_loop()
    line = bytearray()
    with suppress(TimeoutError):
        async with asyncio.timeout(TIMEOUT):
            while not line.endswith(b"\n") and len(line) < _MAX_LINE:
                ready = loop.create_future()
                loop.add_reader(descriptor, _settle, ready)
                try:
                    await ready
                finally:
                    loop.remove_reader(descriptor)
                piece = os.read(descriptor, _MAX_LINE)
                if not piece:
                    break
                line += piece
    return line.decode(errors="replace").strip() if line.endswith(b"\n") else ""


def _settle(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
