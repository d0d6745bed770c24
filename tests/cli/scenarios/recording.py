"""Records a scenario at a real terminal: its commands are typed into bash, in a home of their own.

A recording is a scenario (`scenario.py`) without what commands print: its picture shows that. The
comment below its title is the picture's alternative text. `submit` also takes the name of a file
that holds a collect link, and there are two more steps:

    wait SECONDS   so much later, for the service and for commands
    kill           SIGKILL for the command that runs, as soon as the service has made a share
"""

from __future__ import annotations

import getpass
import os
import pty
import re
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from cli.scenarios.picture import Shown, settle
from cli.scenarios.scenario import KINDS, Scenario, parse
from sealpipe_rehearsal.running_service import RunningService
from support.parts import ROOT, program
from support.terminal import PATIENCE, Done, Terminal, readable

_PROMPT = "\x1e"
"""Begins each prompt, and nothing else prints it."""
_SHELL = 'exec "$0" --norc --noprofile --noediting -i <>"$1" >&0 2>&0'
"""The first terminal that the leader of a session opens becomes the session's."""
_CLOCK = """\
import os, time
from pathlib import Path
time.time_ns = lambda now=time.time_ns: now() + int(Path(os.environ["LATER"]).read_text()) * 10**9
"""
"""A `sitecustomize.py`: the clock of commands, by which batches go, so that nothing has to wait."""

_CODES = (
    "SELECT short_code FROM shares UNION SELECT short_code FROM requests UNION SELECT "
    "short_code FROM submissions"
)


class Shell:
    """bash at a pseudo-terminal."""

    def __init__(self, environ: Mapping[str, str], here: Path) -> None:
        self._master, self._slave = pty.openpty()
        self._shell = subprocess.Popen(
            ["sh", "-c", _SHELL, program("bash"), os.ttyname(self._slave)],
            env={**environ, "PS1": f"{_PROMPT}$ ", "TERM": "xterm"},
            cwd=here,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        self.read()
        return self

    def __exit__(self, *_: object) -> None:
        self._shell.kill()
        self._shell.wait()
        os.close(self._master)
        os.close(self._slave)

    def type(self, line: str) -> None:
        """Type a line, and Enter."""
        os.write(self._master, f"{line}\r".encode())

    def read(self) -> str:
        """Wait for the next prompt. Returns what the terminal showed before it."""
        seen, end = b"", time.monotonic() + PATIENCE
        while not seen.endswith(f"{_PROMPT}$ ".encode()):
            assert readable([self._master], max(0.0, end - time.monotonic())), seen
            seen += os.read(self._master, 65_536)
        return seen.decode().partition(_PROMPT)[0].replace("\r\n", "\n")

    def kill(self) -> None:
        """Kill what runs in the foreground."""
        os.killpg(os.tcgetpgrp(self._master), signal.SIGKILL)


class Recording(Scenario):
    """A file that is recorded by a user at a service."""

    def __init__(self, path: Path, user: Terminal, service: RunningService) -> None:
        super().__init__(path, user, service)
        self._text = path.read_text("utf-8")
        self.title, *about = (
            line.removeprefix("# ") for line in self._text.partition("\n\n")[0].splitlines()
        )
        self.alternative = " ".join(about)
        self._shown: list[Shown] = []
        self._later = user.tmp / "later"
        self._later.write_text("0")
        user.file(str(user.tmp / "sitecustomize.py"), _CLOCK)
        user.environ |= {"PYTHONPATH": str(user.tmp), "LATER": str(self._later)}

    def record(self) -> list[Shown]:
        """Take every step. Returns what the terminal showed, with the same made-up values for what
        varies.
        """
        began = datetime.now(UTC).replace(microsecond=0)
        steps = parse(self._text)
        first = next(number for number, step in enumerate(steps) if step.text.startswith("$ "))
        for step in steps[:first]:
            self.take(step)
        with Shell(self._user.environ, self._user.here) as shell:
            for step, following in zip(steps[first:], [*steps[first + 1 :], None], strict=True):
                if not step.text.startswith("$ "):
                    self.take(step)
                    continue
                shell.type(step.text[2:])
                if following is not None and following.text == "kill":
                    self._wait_for_share()
                    shell.kill()
                self._show(step.text[2:], shell.read())
        self._assert_no_machine_shows()
        return settle(self.title, self._shown, self._exact(), began)

    def _act(self, words: list[str], body: list[str]) -> Done:
        match words:
            case ["kill"]:
                return Done(0, "", "")  # it was done while the command ran
            case ["wait", seconds]:
                self._later.write_text(str(int(self._later.read_text()) + int(seconds)))
                self._service.advance(float(seconds))
                return Done(0, "", "")
            case ["submit", file, *values] if (self._user.here / file).is_file():
                words = ["submit", (self._user.here / file).read_text("utf-8").strip(), *values]
        return super()._act(words, body)

    def _show(self, command: str, text: str) -> None:
        echo, _, printed = text.partition("\n")
        assert echo == command, (echo, command)
        for kind, pattern in KINDS.items():
            if found := re.findall(pattern, printed):
                self.values[kind] = found[-1]
        assert not printed or printed.endswith("\n"), (
            f"the next prompt would stand beside {printed!r}"
        )
        # A line of progress is written over, and wiped at the end.
        lines = [
            line.rpartition("\r")[2].replace("\x1b[K", "") for line in printed.split("\n")[:-1]
        ]
        assert "".join([command, *lines]).replace("\t", "").isprintable(), lines
        self._shown.append(Shown(command, lines))

    def _exact(self) -> dict[str, str]:
        """What varies, and is known: each with its kind."""
        rows = self._service.service.database.rows(_CODES, {})
        codes = {row["short_code"]: "code" for row in rows}
        return {**codes, self.values["KEY_ID"]: "key", self.values["PORT"]: "port"}

    def _assert_no_machine_shows(self) -> None:
        for name in map(
            str, (self._user.home.parent, ROOT, socket.gethostname(), getpass.getuser())
        ):
            shows = (
                re.search(rf"(?<!\w){re.escape(name)}(?!\w)", str(self._shown))
                and name not in self._text
            )
            assert not shows, f"a picture would show {name}"

    def _wait_for_share(self) -> None:
        end = time.monotonic() + PATIENCE
        while not self._service.service.database.rows("SELECT number FROM shares", {}):
            assert time.monotonic() < end, "there is no share to kill a command after"
            time.sleep(0.01)
