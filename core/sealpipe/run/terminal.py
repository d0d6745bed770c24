"""A terminal of its own for a command, so that what it writes to it can be redacted.

Between us and the command stands a process that leads the terminal's session, as a shell does: so
the command can be stopped by a key and continued. Our own terminal is raw meanwhile: every key
reaches the command's terminal, which echoes it, or makes a signal of it.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import termios
import tty
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, NoReturn

from sealpipe.run.program import refuse_command
from sealpipe.run.redaction import Redactor
from sealpipe.run.streams import CHUNK, Signals, Stream, copy_size, open_streams, relay
from sealpipe.spellings import Finder


def run_in_terminal(
    program: str, argv: Sequence[str], environ: Mapping[bytes, bytes], finder: Finder
) -> int:
    """Run a program in a terminal of its own; return its exit code, or minus its signal.

    UsageError if it cannot start.

    Its stderr is that terminal where ours is one, otherwise a pipe.
    """
    with ExitStack() as stack:
        signals = stack.enter_context(Signals())
        streams, theirs, _ = ([], {}, None) if os.isatty(2) else open_streams((2,), finder)
        session = _Session(
            program, argv, environ, theirs.get(2), [stream.source for stream in streams], signals
        )
        stack.callback(session.close)
        for end in theirs.values():
            os.close(end)
        session.make_raw()
        streams.append(Stream(os.dup(session.master), 1, Redactor(finder)))
        status = relay(
            streams,
            signals,
            session.poll,
            {0: session.type, session.control.fileno(): session.hear},
        )
    if session.failure is not None:
        refuse_command(argv[0], session.failure)
    return status


class _Session:
    """The command's terminal, seen from ours."""

    def __init__(
        self,
        program: str,
        argv: Sequence[str],
        environ: Mapping[bytes, bytes],
        stderr: int | None,
        ours: Sequence[int],
        signals: Signals,
    ) -> None:
        self._attributes = termios.tcgetattr(0)
        self.master, slave = os.openpty()
        termios.tcsetattr(slave, termios.TCSANOW, self._attributes)
        copy_size(0, slave)
        self.control, theirs = socket.socketpair()
        self.failure: OSError | None = None
        self._status: int | None = None
        self._typed = b""
        held = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        self._leader = os.fork()
        if not self._leader:
            for end in (self.master, *ours):
                os.close(end)
            self.control.close()
            _lead(program, argv, environ, slave, stderr, theirs, held)
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
        os.close(slave)
        theirs.close()
        os.set_blocking(self.master, False)
        os.set_blocking(self.control.fileno(), False)
        signals.start(self._pass_on)

    def make_raw(self) -> None:
        """Hand every key to the command's terminal."""
        tty.setraw(0, termios.TCSADRAIN)

    def poll(self) -> int | None:
        """Return the command's exit code, or minus its signal; None while it runs."""
        return self._status

    def type(self, selector: selectors.BaseSelector) -> None:
        """Pass on what is typed; read no more of it until the command's terminal has taken it."""
        if not self._typed:
            with suppress(OSError):
                self._typed = os.read(0, CHUNK)
            if not self._typed:
                selector.unregister(0)
                return
        self._write_typed(selector)

    def _write_typed(self, selector: selectors.BaseSelector) -> None:
        was_waiting = self.master in selector.get_map()
        try:
            self._typed = self._typed[os.write(self.master, self._typed) :]
        except BlockingIOError:
            pass
        except OSError:
            self._typed = b""
        if self._typed and not was_waiting:
            selector.unregister(0)
            selector.register(self.master, selectors.EVENT_WRITE, self._write_typed)
        elif was_waiting and not self._typed:
            selector.unregister(self.master)
            selector.register(0, selectors.EVENT_READ, self.type)

    def hear(self, selector: selectors.BaseSelector) -> None:
        """Hear what became of the command: it ended, it was stopped, or it could not be started."""
        try:
            said = self.control.recv(CHUNK)
        except BlockingIOError:
            return
        for line in said.splitlines() or [b"killed %d" % -signal.SIGKILL]:
            word, _, number = line.partition(b" ")
            if word == b"stopped":
                self._stop()
            else:
                self._status = int(number)
                self.failure = (
                    OSError(int(number), os.strerror(int(number))) if word == b"failed" else None
                )
                selector.unregister(self.control)

    def _stop(self) -> None:
        """Stop as the command was stopped, and go on with it."""
        self._restore()
        os.kill(os.getpid(), signal.SIGSTOP)
        self.make_raw()
        copy_size(0, self.master)
        os.kill(self._leader, signal.SIGCONT)

    def _pass_on(self, number: int) -> None:
        if number == signal.SIGWINCH:
            copy_size(0, self.master)
        else:
            os.kill(self._leader, number)

    def _restore(self) -> None:
        with suppress(termios.error):
            termios.tcsetattr(0, termios.TCSADRAIN, self._attributes)

    def close(self) -> None:
        """Give our terminal back, and end the session."""
        self._restore()
        self.control.close()
        os.close(self.master)
        os.waitpid(self._leader, 0)


def _lead(
    program: str,
    argv: Sequence[str],
    environ: Mapping[bytes, bytes],
    slave: int,
    stderr: int | None,
    control: socket.socket,
    held: set[Any],
) -> NoReturn:
    """Lead the session of the command's terminal.

    Start the command in its foreground, and say what becomes of it.
    """
    try:
        os.login_tty(slave)
        if stderr is not None:
            os.dup2(stderr, 2)
            os.close(stderr)
        signals = Signals()
        signals.__enter__()
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
        _say(control, *_watch(program, argv, environ, signals, control))
        with suppress(OSError):
            # Until everything was read: the end of a session's leader may cut off the terminal.
            control.recv(1)
    finally:
        os._exit(0)


def _watch(
    program: str,
    argv: Sequence[str],
    environ: Mapping[bytes, bytes],
    signals: Signals,
    control: socket.socket,
) -> tuple[str, int]:
    """Start the command and wait for its end; return what became of it, in a word and a number."""
    try:
        process = subprocess.Popen(  # noqa: S603 - the user's own command, no shell
            argv,
            executable=program,
            env=environ,
            process_group=0,
        )
        _give_foreground(process.pid)
    except OSError as error:
        return "failed", error.errno or 0
    finally:
        null = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(null, number)  # so that the terminal ends when the command has closed it
    signals.start(lambda number: _pass_on(process.pid, number))
    while True:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            return "ended", os.waitstatus_to_exitcode(status)
        _say(control, "stopped", os.WSTOPSIG(status))


def _pass_on(pid: int, number: int) -> None:
    with suppress(OSError):  # a program that changed its user (sudo) gets no signal of ours
        (os.killpg if number == signal.SIGCONT else os.kill)(pid, number)


def _give_foreground(pid: int) -> None:
    """Put the command in the foreground of its terminal, once it runs.

    A key's signal before that reaches us instead.

    A command that wanted to read before that was stopped for it, and goes on.
    """
    with suppress(OSError):  # it has ended
        os.tcsetpgrp(0, pid)
        os.killpg(pid, signal.SIGCONT)


def _say(control: socket.socket, word: str, number: int) -> None:
    with suppress(OSError):
        control.sendall(f"{word} {number}\n".encode())
