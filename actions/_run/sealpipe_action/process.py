"""Runs sealpipe as a child process: forwards stderr line by line, and signals."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import threading
from collections.abc import Callable, Container, Mapping, Sequence
from typing import IO, Any, NamedTuple

from sealpipe.ci_commands import is_stderr_readable, write_stderr
from sealpipe_action import runner_output

_ERROR = b'{"schema": 1, "error": '
_ANNOTATION = b"::error title=sealpipe::"


class ProcessResult(NamedTuple):
    """Exit code, stdout, and the error object if there is one."""

    code: int
    out: str
    error: Mapping[str, Any]

    def rows(self) -> list[dict[str, Any]]:
        """The JSON objects on stdout: one, or a list of them; none if stdout is empty."""
        if not self.out.strip():
            return []
        decoded = json.loads(self.out)
        return decoded if isinstance(decoded, list) else [decoded]


class ProcessRunner:
    """Runs processes one after the other and forwards signals to them.

    The runner sends a cancelled job SIGINT, then SIGTERM, and gives it ten seconds for both.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = dict(environ)
        self.interrupted = 0
        self.clean: Callable[[str], str] = str
        """What is done to text of stderr before it is logged."""
        self._process: subprocess.Popen[bytes] | None = None
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, _: self._stop(number))

    def run(
        self, argv: Sequence[str], *, stdin: str = "", expected: Container[int] = ()
    ) -> ProcessResult:
        """Run a command to its end, whatever signals arrive.

        An expected exit code is not logged as an error.

        `stdin` is a few lines at most. Raises OSError if the command cannot be run.
        """
        if self.interrupted:
            return ProcessResult(128 + self.interrupted, "", {})
        process = subprocess.Popen(  # noqa: S603 - a list of words, no shell
            argv,
            env=self.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._process = process
        if self.interrupted:
            self._stop(self.interrupted)
        error_lines: list[bytes] = []
        assert process.stdin and process.stdout and process.stderr  # noqa: S101, PT018 - all are pipes
        thread = threading.Thread(
            target=self._forward, args=(process.stderr, error_lines), daemon=True
        )
        thread.start()
        with contextlib.suppress(BrokenPipeError), process.stdin as stream:
            stream.write(stdin.encode("utf-8", "surrogateescape"))
        out = process.stdout.read()
        code = process.wait()
        thread.join()
        self._process = None
        error = _error(error_lines)
        if code not in expected:
            write_stderr(
                b"".join(self._clean(line) for line in error_lines if line.startswith(_ANNOTATION))
            )
            if error:
                runner_output.log_error(error, self.clean)
        return ProcessResult(
            code if code >= 0 else 128 - code, out.decode("utf-8", "replace"), error
        )

    def _stop(self, number: int) -> None:
        self.interrupted = number
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    def _forward(self, stream: IO[bytes], error_lines: list[bytes]) -> None:
        """Forward each line, except the error in either form: it is logged later, unless it was
        expected.
        """
        for line in stream:
            if line.startswith((_ERROR, _ANNOTATION)):
                error_lines.append(line)
            elif is_stderr_readable() or not line.startswith(b"::add-mask::"):
                write_stderr(self._clean(line))

    def _clean(self, line: bytes) -> bytes:
        return self.clean(line.decode("utf-8", "surrogateescape")).encode(
            "utf-8", "surrogateescape"
        )


def _error(error_lines: Sequence[bytes]) -> Mapping[str, Any]:
    decoded_error = {}
    for line in error_lines:
        if line.startswith(_ERROR):
            with contextlib.suppress(ValueError):
                decoded_error = json.loads(line)["error"]
    return decoded_error if isinstance(decoded_error, dict) else {}
