"""Commands under `sealpipe run` that are left running."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable

from support.commands import SEALPIPE
from support.terminal import PATIENCE, Terminal, readable

VALUE = "canary-of-a-command"
WORDS = ("run", "-e", "SECRET=env:GIVEN", "--")


def started(
    user: Terminal, *command: str, words: tuple[str, ...] = WORDS, **how: int
) -> subprocess.Popen[bytes]:
    """A command under `sealpipe run`, its streams to be read as it runs; in a session without a
    terminal.
    """
    streams = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        **how,
    }
    environ = user.with_environ({"GIVEN": VALUE})
    return subprocess.Popen(
        [*SEALPIPE, *words, *command], env=environ, cwd=user.here, start_new_session=True, **streams
    )  # type: ignore[call-overload, no-any-return]


def read_until(process: subprocess.Popen[bytes], text: bytes) -> bytes:
    """What it writes to stdout, up to a text."""
    seen = b""
    assert process.stdout
    while text not in seen:
        assert readable([process.stdout], PATIENCE), seen
        part = os.read(process.stdout.fileno(), 65_536)
        assert part, seen
        seen += part
    return seen


def wait_until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)
