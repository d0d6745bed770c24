"""A terminal with a shell in which a reader types: bash on a pseudo-terminal, and all that it
shows.
"""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import termios
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from support.terminal import readable

PATIENCE: Final = 240
"""Seconds for a command on a loaded machine: the longest one of a page installs packages, or waits
a minute.
"""
_LOOP: Final = """\
exec <>"$0" >&0 2>&1
while IFS= read -r -d '' -u 3 typed; do
  eval "$typed" 3<&- 4>&-
  echo $? >&4
done
"""


class Shell:
    """A shell of its own; what is typed comes to it by another way, so that a command cannot read
    the next one.
    """

    def __init__(self, environ: Mapping[str, str], cwd: Path) -> None:
        self._screen, slave = pty.openpty()
        mode = termios.tcgetattr(slave)
        mode[1] &= ~termios.ONLCR
        mode[3] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, mode)
        termios.tcsetwinsize(slave, (40, 100))
        theirs, self._typed = os.pipe()
        self._codes, told = os.pipe()
        self._process = subprocess.Popen(
            [
                "bash",
                "--noprofile",
                "--norc",
                "-c",
                f"exec 3<&{theirs} 4>&{told}\n{_LOOP}",
                os.ttyname(slave),
            ],
            env=dict(environ),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # and opening the terminal makes it the session's
            pass_fds=(theirs, told),
        )
        for end in (theirs, told):
            os.close(end)
        self._slave = slave  # kept open: what was printed before the shell ended can still be read

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for end in (self._screen, self._slave, self._typed, self._codes):
            os.close(end)

    def run(self, typed: str) -> tuple[int, str]:
        """Type a command and wait until it ends: its exit code, and what it printed."""
        self._type(typed)
        shown, told, end = b"", b"", time.monotonic() + PATIENCE
        while not told.endswith(b"\n"):
            ready = readable([self._screen, self._codes], max(0.0, end - time.monotonic()))
            assert ready, f"{typed!r} takes too long; it printed:\n{_plain(shown)}"
            if self._screen in ready:
                shown += os.read(self._screen, 65_536)
            elif self._codes in ready:
                part = os.read(self._codes, 64)
                assert part, f"{typed!r} ended the shell; it printed:\n{_plain(shown)}"
                told += part
        while readable([self._screen], 0):
            shown += os.read(self._screen, 65_536)
        return int(told), _plain(shown)

    def leave_running(self, typed: str, until: Callable[[str], bool]) -> str:
        """Type a command that goes on, and look until it has printed something; what it printed."""
        self._type(typed)
        shown, end = b"", time.monotonic() + PATIENCE
        while not until(_plain(shown)):
            ready = readable(
                [self._screen, self._codes], max(0.0, min(end - time.monotonic(), PATIENCE))
            )
            if not ready or self._codes in ready:
                break
            shown += os.read(self._screen, 65_536)
        return _plain(shown)

    def _type(self, typed: str) -> None:
        os.write(self._typed, typed.encode() + b"\0")


def _plain(shown: bytes) -> str:
    """What stands on the screen: without colours, and without what a carriage return wrote over."""
    text = re.sub(
        r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|[()][A-Z0-9])",
        "",
        shown.decode(errors="replace"),
    )
    return re.sub(r"(?m)^[^\n]*\r(?!$)", "", text.replace("\r\n", "\n")).replace("\r", "")
