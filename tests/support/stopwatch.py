"""A stopwatch for deadlines of tests: it stands still while this process waits for a core.

A busy machine lets a thread that is ready wait, for seconds at a load of 20, and a paused one lets
all of them wait. What the thread that waited longest has waited is left out, so that a limit means
the same on any machine: how long the code worked, and how long it chose to wait.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

TICK: Final = 0.05
"""Seconds between two looks."""
LONGEST: Final = 0.25
"""What counts of a time in which nobody could look: all of the process stood still."""


@contextmanager
def stopwatch(*others: int) -> Iterator[Callable[[], float]]:
    """The seconds since the start of the block in which this process could run, and others that the
    test waits for (their ids).

    A block that does not end is ended by the test's time limit.
    """
    watch, over = _Watch(["self", *others]), threading.Event()

    def keep_looking() -> None:
        while not over.wait(TICK):
            watch.read()

    looking = threading.Thread(target=keep_looking, name="stopwatch", daemon=True)
    looking.start()
    try:
        yield watch.read
    finally:
        over.set()
        looking.join()


class _Watch:
    def __init__(self, processes: Sequence[object]) -> None:
        self._lock = threading.Lock()
        self._processes = processes
        self._passed = 0.0
        self._at, self._waits = time.monotonic(), _read_waits(processes)

    def read(self) -> float:
        """Count what has passed since the last look."""
        with self._lock:
            now, waits = time.monotonic(), _read_waits(self._processes)
            waited = max((waits[each] - self._waits.get(each, 0.0) for each in waits), default=0.0)
            self._passed += min(max(now - self._at - waited, 0.0), LONGEST)
            self._at, self._waits = now, waits
            return self._passed


def _read_waits(processes: Sequence[object]) -> Mapping[Path, float]:
    """How many seconds each thread has been ready and without a core; nothing where the system does
    not tell it.
    """
    waits = {}
    for process in processes:
        for file in Path(f"/proc/{process}/task").glob("*/schedstat"):
            try:
                waits[file] = int(file.read_bytes().split()[1]) / 1e9
            except (OSError, IndexError):  # it has ended, or is not counted
                continue
    return waits
