"""How tests start `sealpipe`: whole, or forked from a process that has imported it already."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from support import forked

SEALPIPE = (sys.executable, "-m", "sealpipe")
LANG = "C.UTF-8"


def command(environ: Mapping[str, str]) -> tuple[str, ...]:
    """What to start for `sealpipe`, with its words after it, and with this environment.

    Whole where the environment makes a difference to Python itself: what is forked has started without it.
    """
    if environ.get("LANG") != LANG or any(name.startswith(forked.UNLIKE) for name in environ):
        return SEALPIPE
    return (sys.executable, "-IS", forked.__file__, "call", str(_door()))


@functools.cache
def _door() -> Path:
    """Where the process listens that commands are forked from; one for each process of tests, as long as it lives."""
    folder = Path(tempfile.mkdtemp())
    door = folder / "door"
    environ = {"PATH": os.environ["PATH"], "LANG": LANG}
    process = subprocess.Popen(
        [sys.executable, forked.__file__, "serve", str(door)], stdin=subprocess.PIPE, env=environ, cwd="/"
    )

    def end() -> None:
        assert process.stdin
        process.stdin.close()
        process.wait()
        shutil.rmtree(folder)

    atexit.register(end)
    while not door.exists():
        assert process.poll() is None, "what commands are forked from did not start"
        time.sleep(0.01)
    return door
