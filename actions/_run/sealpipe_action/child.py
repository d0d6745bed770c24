"""Running sealpipe: its errors go to the log as they come, what stops us stops it first."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import threading
from collections.abc import Container, Mapping, Sequence
from typing import IO, Any, NamedTuple

from sealpipe.ci_systems import runner_reads_stderr, write_stderr
from sealpipe_action import telling

_ERROR = b'{"schema": 1, "error": '
_SHOWN = b"::error title=sealpipe::"


class Done(NamedTuple):
    """How it ended: exit code, stdout, and the error object where it gave one."""

    code: int
    out: str
    error: Mapping[str, Any]

    def rows(self) -> list[dict[str, Any]]:
        """What stdout holds: one JSON object, or a list of them; none where it holds nothing."""
        if not self.out.strip():
            return []
        found = json.loads(self.out)
        return found if isinstance(found, list) else [found]


class Children:
    """Starts one after the other. A job that is cancelled gets SIGINT, then SIGTERM, and ten seconds for both."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = dict(environ)
        self.interrupted = 0
        self._process: subprocess.Popen[bytes] | None = None
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, _: self._stop(number))

    def run(self, argv: Sequence[str], *, expected: Container[int] = ()) -> Done:
        """Run it to its end, whatever arrives meanwhile. An exit code that is expected is shown as no error.

        Raises OSError where it cannot be run.
        """
        if self.interrupted:
            return Done(128 + self.interrupted, "", {})
        process = subprocess.Popen(  # noqa: S603 - a list of words, no shell
            argv, env=self.environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._process = process
        if self.interrupted:
            self._stop(self.interrupted)
        held: list[bytes] = []
        assert process.stdout is not None and process.stderr is not None  # noqa: S101, PT018 - both are pipes
        thread = threading.Thread(target=_forward, args=(process.stderr, held), daemon=True)
        thread.start()
        out = process.stdout.read()
        code = process.wait()
        thread.join()
        self._process = None
        error = _error(held)
        if code not in expected:
            write_stderr(b"".join(line for line in held if line.startswith(_SHOWN)))
            if error:
                telling.failure(error)
        return Done(code if code >= 0 else 128 - code, out.decode("utf-8", "replace"), error)

    def _stop(self, number: int) -> None:
        self.interrupted = number
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)


def _forward(stream: IO[bytes], held: list[bytes]) -> None:
    """Each line as it comes, but for the error, in both its forms: people get it in words, and not if it is none."""
    for line in stream:
        if line.startswith((_ERROR, _SHOWN)):
            held.append(line)
        elif runner_reads_stderr() or not line.startswith(b"::add-mask::"):
            write_stderr(line)


def _error(held: Sequence[bytes]) -> Mapping[str, Any]:
    found = {}
    for line in held:
        if line.startswith(_ERROR):
            with contextlib.suppress(ValueError):
                found = json.loads(line)["error"]
    return found if isinstance(found, dict) else {}
