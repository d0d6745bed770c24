"""One clock for a process and all that it starts, which a file moves: libfaketime's.

So a PostgreSQL that it starts lives in the same time. What measures how long something takes (the
monotonic clocks) runs as ever.
"""

from __future__ import annotations

import os
import select
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.parts import missing

_FILE = "FAKETIME_TIMESTAMP_FILE"


def find_faketime() -> Path:
    """The library for programs with threads. Skips the test without it."""
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    return found[0] if found else missing("faketime is not installed")


def _sleep(seconds: float) -> None:
    """As `time.sleep`, whose call of the system libfaketime 0.9 answers with an error."""
    select.select([], [], [], seconds)


@contextmanager
def faked_time() -> Iterator[None]:
    """Have such a clock in the block: this program is started anew to have it."""
    if _FILE not in os.environ:
        clock = Path(tempfile.mkdtemp(prefix="clock-")) / "clock"
        clock.parent.chmod(0o755)  # PostgreSQL is another user where this one is root
        clock.write_text("+0\n")
        environ = {
            "LD_PRELOAD": str(find_faketime()),
            _FILE: str(clock),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        os.environ |= environ
        os.execv(sys.executable, [sys.executable, *sys.argv])  # noqa: S606 - this program
    clock = Path(os.environ[_FILE])
    plain, time.sleep = time.sleep, _sleep
    try:
        yield
    finally:
        time.sleep = plain
        clock.unlink()
        clock.parent.rmdir()


def move_clock(seconds: float) -> None:
    """Set the clock to so many seconds after that of the machine."""
    clock = Path(os.environ[_FILE])
    part = clock.with_suffix(".part")
    part.write_text(f"{seconds:+.3f}\n")
    part.rename(clock)  # who reads it meanwhile reads the one or the other
