"""WebCrypto at the other end of a pipe (tests/unit/wire/serve.mjs): jobs go out, their answers come
back in order.
"""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

HERE = Path(__file__).resolve().parent
Job = dict[str, Any]


class Node:
    """A node that serves until it is closed.

    Answers are read in a thread: neither side waits on a full pipe.
    """

    def __init__(self, program: str) -> None:
        command = [program, str(HERE / "serve.mjs")]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._reader = ThreadPoolExecutor(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.stdin:
            self._process.stdin.close()
        self._process.wait(10)
        self._reader.shutdown()
        if self._process.stdout:
            self._process.stdout.close()

    def send(self, jobs: list[Job]) -> Future[list[Any]]:
        """The answers to come; a refusal is {"refused": "part reason"}."""
        assert self._process.stdin
        answer = self._reader.submit(self._line)
        self._process.stdin.write(json.dumps(jobs).encode() + b"\n")
        self._process.stdin.flush()
        return answer

    def ask(self, jobs: list[Job]) -> list[Any]:
        return self.send(jobs).result(300)

    def _line(self) -> list[Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"node ended with {self._process.wait(10)}")
        answers: list[Any] = json.loads(line)
        return answers
