"""A port of how a runner reads a step: a thread and a queue for each stream, and one loop that empties both.

Written from the published source of GitHub's runner and of Azure's agent (ProcessInvoker: StartReadStream,
ProcessOutput). Which line is looked at first hangs on the scheduler, so each place where it may be late can be made so.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import IO

from support.fake_commands import command
from support.fake_masker import Masker

PATIENCE = 60


def read_github(line: str) -> str | None:
    """The value that a line masks, for GitHub's runner."""
    found = command(line)
    return found.data if found and found.name == "add-mask" else None


def read_azure(line: str) -> str | None:
    """The value that a line masks, for the agent of Azure Pipelines: the command may stand anywhere in it."""
    _, mark, value = line.partition("##vso[task.setsecret]")
    return value.replace("%0A", "\n").replace("%0D", "\r").replace("%AZP25", "%") if mark else None


class TwoReaders:
    """`late`: seconds that each line of stderr waits in its thread."""

    def __init__(self, late: float = 0, read: Callable[[str], str | None] = read_github) -> None:
        self.late, self._read = late, read
        self.log: list[str] = []
        """What everybody sees."""
        self.code = 0
        self.stalled = 0.0
        """The longest time, in seconds, that this got no turn on a busy machine."""
        self._mask = Masker()
        self._errors: SimpleQueue[str] = SimpleQueue()
        self._outputs: SimpleQueue[str] = SimpleQueue()
        self._arrived = threading.Event()

    def run(self, argv: Sequence[str], environ: Mapping[str, str], here: Path) -> TwoReaders:
        """Run it to its end. Returns itself."""
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ, cwd=here
        )
        assert process.stdout
        assert process.stderr
        readers = [
            threading.Thread(target=self._follow, args=(process.stdout, self._outputs, 0)),
            threading.Thread(target=self._follow, args=(process.stderr, self._errors, self.late)),
        ]
        for reader in readers:
            reader.start()
        turn = time.monotonic()
        while any(reader.is_alive() for reader in readers):
            self.stalled, turn = max(self.stalled, time.monotonic() - turn), time.monotonic()
            if self._arrived.wait(0.01):
                self._arrived.clear()
                self._empty()
        self._empty()
        self.code = process.wait(PATIENCE)
        return self

    def _follow(self, stream: IO[bytes], queue: SimpleQueue[str], late: float) -> None:
        with stream:
            for line in stream:
                time.sleep(late)
                queue.put(line.decode("utf-8", "replace").rstrip("\r\n"))
                self._arrived.set()

    def _empty(self) -> None:
        errors = _all(self._errors)
        for line in [*errors, *_all(self._outputs)]:
            value = self._read(line)
            if value is None:
                self.log.append(self._mask(line))
            else:
                self._mask.add(value)


def _all(queue: SimpleQueue[str]) -> list[str]:
    return [queue.get() for _ in range(queue.qsize())]
