"""A person at a real terminal: a command in the foreground of a pseudo-terminal, with job control
as a shell has it.
"""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from typing import Self

from support.terminal import PATIENCE, Done, readable

SHELL = """\
import fcntl, os, signal, sys, termios
path, told, go_on, *command = sys.argv[1:]
terminal = os.open(path, os.O_RDWR)
fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
child = os.fork()
if not child:
    os.setpgid(0, 0)
    os.tcsetpgrp(terminal, os.getpgrp())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.close(terminal)
    os.close(int(told))
    os.close(int(go_on))
    os.execvp(command[0], command)
told = os.fdopen(int(told), "w")
print(child, file=told, flush=True)
while True:
    _, status = os.waitpid(child, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        break
    print("stopped", file=told, flush=True)
    os.read(int(go_on), 1)
    os.tcsetpgrp(terminal, child)
    os.kill(-child, signal.SIGCONT)
sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
"""
"""What a shell does for one job: a group of its own in the foreground, and `fg` once it was
stopped.
"""


class Person:
    """A command, and who sits before its terminal. `seen` is all that the terminal showed."""

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        cwd: os.PathLike[str],
        stdin: bytes = b"",
    ) -> None:
        self._master, slave = pty.openpty()
        self._told, told = os.pipe()
        go_on, self._go_on = os.pipe()
        self._shell = subprocess.Popen(
            [sys.executable, "-I", "-c", SHELL, os.ttyname(slave), str(told), str(go_on), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environ),
            cwd=cwd,
            start_new_session=True,
            pass_fds=(told, go_on),
        )
        self._slave = slave  # kept open: its settings are looked at
        for each in (told, go_on):
            os.close(each)
        assert self._shell.stdin is not None
        self._shell.stdin.write(stdin)
        self._shell.stdin.close()
        self._shell.stdin = None
        self.seen = b""
        self.pid = int(self._tell())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shell.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            self._shell.kill()
        self._shell.communicate()
        for each in (self._master, self._slave, self._told, self._go_on):
            os.close(each)

    def waits_for(self, text: str) -> None:
        """Look at the terminal until it shows a text, after what was seen before."""
        start, end = len(self.seen), time.monotonic() + PATIENCE
        while text.encode() not in self.seen[start:]:
            assert readable([self._master], max(0.0, end - time.monotonic())), (text, self.seen)
            self.seen += os.read(self._master, 65_536)

    def types(self, text: str | bytes) -> None:
        """Type, as it comes off a keyboard: Enter is a carriage return."""
        os.write(self._master, text if isinstance(text, bytes) else text.encode())

    def resizes(self, rows: int, columns: int) -> None:
        """Change the size of the window."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def answers(self, prompt: str, text: str) -> None:
        """Wait for a question, and answer it."""
        self.waits_for(prompt)
        self.types(f"{text}\r")

    def shows_what_is_typed(self) -> bool:
        """Whether the terminal echoes now."""
        return bool(termios.tcgetattr(self._slave)[3] & termios.ECHO)

    def is_stopped(self) -> None:
        """Wait until the command was stopped."""
        assert self._tell() == "stopped"

    def goes_on(self) -> None:
        """`fg`."""
        os.write(self._go_on, b"\n")

    def done(self) -> Done:
        """Wait until it ended."""
        out, err = self._shell.communicate(timeout=PATIENCE)
        while readable([self._master], 0.05):
            self.seen += os.read(self._master, 65_536)
        return Done(self._shell.returncode, out.decode(), err.decode())

    def _tell(self) -> str:
        line = b""
        while not line.endswith(b"\n"):
            assert readable([self._told], PATIENCE), "the shell says nothing"
            part = os.read(self._told, 1)
            assert part, self._shell.communicate()
            line += part
        return line.decode().strip()
