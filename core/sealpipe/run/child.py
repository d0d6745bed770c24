"""Runs a command: starts it, passes signals on, and redacts what it writes until it has ended.

A stream of ours that is a terminal is one for the command, too. Where a person sits at it, the
command gets a terminal of its own (`sealpipe.run.terminal`); otherwise it stays in our process
group, and keys such as Ctrl+C reach it without us. Its exit code becomes ours; after signal N,
128+N.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from sealpipe.run.program import refuse_command, to_exit_code
from sealpipe.run.streams import Signals, open_streams, relay
from sealpipe.spellings import Finder

_FROM_KEYS: Final = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP)
"""Signals that a terminal sends to a whole process group."""


def run_command(
    program: str,
    argv: Sequence[str],
    environ: Mapping[bytes, bytes],
    finder: Finder | None,
    lock: int | None = None,
) -> int:
    """Run a program with exactly this environment, and return its exit code.

    Without `finder`, nothing is redacted. The program holds the descriptor `lock`, too, as long as
    it runs.

    UsageError if it cannot be started.
    """
    if finder is not None and _is_at_terminal():
        from sealpipe.run.terminal import run_in_terminal  # only where a person sits

        return to_exit_code(run_in_terminal(program, argv, environ, finder))
    with Signals() as signals:
        streams, theirs, resize = ([], {}, None) if finder is None else open_streams((1, 2), finder)
        try:
            process = subprocess.Popen(  # noqa: S603 - the user's own command, no shell
                argv,
                executable=program,
                env=environ,
                stdout=theirs.get(1),
                stderr=theirs.get(2),
                pass_fds=() if lock is None else (lock,),
            )
        except OSError as error:
            refuse_command(argv[0], error)
        finally:
            for end in set(theirs.values()):
                os.close(end)
        try:
            signals.start(lambda number: _pass_on(process, number, resize))
            return to_exit_code(relay(streams, signals, process.poll))
        except BaseException:
            process.terminate()
            raise


def _pass_on(
    process: subprocess.Popen[bytes], number: int, resize: Callable[[], object] | None
) -> None:
    if number == signal.SIGWINCH and resize is not None:
        resize()
    if number not in _FROM_KEYS or not _is_foreground():
        with suppress(OSError):  # a program that changed its user (sudo) gets no signal of ours
            process.send_signal(number)
    if number == signal.SIGTSTP:
        os.kill(os.getpid(), signal.SIGSTOP)


def _is_foreground() -> bool:
    """Return whether we are in the foreground of a terminal.

    Then its keys' signals reach the command, too.
    """
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def _is_at_terminal() -> bool:
    return os.isatty(0) and os.isatty(1) and _is_foreground()
