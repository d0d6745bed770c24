"""Commands in the process of the tests, killed at one step after another: no start, no strace, some
milliseconds each.

A step is each request, to the service or of a plugin, before it leaves and after its response came,
each wait for a next try, and each call that changes a file or writes to stdout, before it is made.
A kill lands between two of those, so no other moment leaves anything else behind. No step is one of
the code within: which functions it calls is its own.

SIGKILL runs no `finally`, no `__exit__` and no `__del__`, and the kernel lets go of the locks. In
one process neither comes by itself: an exception runs all of them, and a frame that is kept for
ever keeps its locks. So `Killed` unwinds the command and lets go of its locks, and what it cleans
up meanwhile does not count: every file is put back as it was at that moment, and nothing leaves any
more, because every later step raises `Killed` again.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import tempfile
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, ClassVar
from unittest import mock

import httpx

from sealpipe import signals
from sealpipe.api.operation import Failure, Operation, Response
from sealpipe.cancellation import Cancellation
from sealpipe.cli import main
from sealpipe.network.service_network import ServiceNetwork
from support.job import Job
from support.strace import Point
from support.terminal import Done

CHANGING = ("ftruncate", "link", "mkdir", "rename", "rmdir", "unlink", "write")
"""What changes a file, or writes to stdout: functions of `os`, whatever `pathlib` calls them."""
KILLED = -9
"""The exit code of a process that was killed."""


NEVER = Point("send", 10**6, "never reached")
"""One step beyond the end."""


class Killed(BaseException):
    """The command is dead. Nobody handles it."""


class Killer:
    """Runs commands of one job, and kills the first of them at `point`; without a point it only
    takes `steps` down.
    """

    def __init__(self, point: Point | None = None, *, every: bool = False) -> None:
        self.point, self._every = point, every
        self.steps: list[Point] = []
        """With `every` all of them, else those that leave something else behind than the one
        before.
        """
        self._counts: Counter[str] = Counter()
        self._files: Files | None = None
        """What the kill found. From then on nothing happens any more."""
        self._left: object = None
        """What the last step leaves behind: files, and how much has been printed or sent that
        changes anything.
        """
        self._folder = Path()
        self._thread = threading.get_ident()
        self._silent: IO[str] | None = None
        self._out: IO[str] | None = None
        self._sent = 0

    def run(
        self, words: Sequence[str], folder: Path, here: Path, environ: Mapping[str, str]
    ) -> Done:
        """Run `sealpipe WORDS` in `here`, with that environment.

        `folder` holds all files that it may change.
        """
        self._folder = folder
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            self._out, self._silent = out, err
            with self._in_place_of_a_process(here, environ, out, err):
                code = self.carry_out(words)
            if self._files is not None:
                code = KILLED
                self._files.restore(folder)
            out.seek(0)
            err.seek(0)
            return Done(code, out.read(), err.read())

    def carry_out(self, words: Sequence[str]) -> int:
        """Run the command, and return its exit code."""
        try:
            return main.run(words)
        except Killed as killed:
            _forget(killed)
            return KILLED

    @contextlib.contextmanager
    def _in_place_of_a_process(
        self, here: Path, environ: Mapping[str, str], out: IO[str], err: IO[str]
    ) -> Iterator[None]:
        before = Path.cwd()
        os.chdir(here)
        try:
            with contextlib.ExitStack() as stack:
                stack.enter_context(mock.patch.dict(os.environ, environ, clear=True))
                stack.enter_context(mock.patch.multiple(sys, stdout=out, stderr=err))
                # Signals are for the process of the tests.
                nothing = mock.Mock()
                stack.enter_context(
                    mock.patch.multiple(signals, raise_on_signals=nothing, exit_on_signals=nothing)
                )
                asking = self._asking(ServiceNetwork.send)
                stack.enter_context(mock.patch.object(ServiceNetwork, "send", asking))
                waiting = mock.patch.object(
                    Cancellation, "sleep", lambda _, seconds: self._step("wait", str(seconds))
                )
                stack.enter_context(waiting)
                stack.enter_context(
                    mock.patch.object(httpx.Client, "send", self._sending(httpx.Client.send))
                )
                changing = {name: self._calling(name, getattr(os, name)) for name in CHANGING}
                # A kill loses nothing that is written; only a power cut does, and this is none.
                stack.enter_context(mock.patch.multiple(os, fsync=nothing, **changing))
                yield
        finally:
            os.chdir(before)

    def _step(self, name: str, text: str = "") -> None:
        """Take a step, unless the command is killed before it, or was before."""
        if self._files is not None:
            raise Killed
        self._counts[name] += 1
        step = Point(name, self._counts[name], text)
        if self.point is None:
            self._sent += name in ("answered", "response") and not text.startswith("GET ")
            left = (
                _read(self._folder),
                self._sent,
                self._out and os.fstat(self._out.fileno()).st_size,
            )
            if self._every or left != self._left:
                self.steps.append(step)
                self._left = left
        elif (step.name, step.number) == (self.point.name, self.point.number):
            self._files = Files(self._folder)
            raise Killed

    def _asking(self, send: Callable[..., Response | Failure]) -> Callable[..., Response | Failure]:
        """A request to the service."""

        def asking(
            network: ServiceNetwork, operation: Operation[Any], *more: Any
        ) -> Response | Failure:
            asked = f"{operation.method} {operation.path}"
            self._step("send", asked)
            result = send(network, operation, *more)
            self._step("answered", asked)
            return result

        return asking

    def _sending(self, send: Callable[..., httpx.Response]) -> Callable[..., httpx.Response]:
        """A plugin's request over HTTP."""

        def sending(client: httpx.Client, request: httpx.Request, **options: Any) -> httpx.Response:
            self._step("request", f"{request.method} {request.url}")
            response = send(client, request, **options)
            self._step("response", f"{request.method} {request.url}")
            return response

        return sending

    def _calling(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def calling(*words: Any, **options: Any) -> Any:
            is_ours = threading.get_ident() == self._thread  # the service's threads are others
            is_note = self._silent is not None and words and words[0] == self._silent.fileno()
            if is_ours and not (is_note and self._files is None):
                self._step(name, " ".join(map(repr, words))[:80])
            return call(*words, **options)

        return calling


class Files:
    """Everything in a folder, as it is now."""

    def __init__(self, folder: Path) -> None:
        self._found = _read(folder)

    def restore(self, folder: Path) -> None:
        """Put everything back."""
        now = _read(folder)
        for path in sorted(now, reverse=True):
            if path not in self._found or now[path] != self._found[path] is not None:
                shutil.rmtree(path) if now[path] is None else Path(path).unlink()
        for path, found in sorted(self._found.items()):
            if found is None:
                Path(path).mkdir(mode=0o700, exist_ok=True)
            elif found != now.get(path):
                mode, content = found
                Path(path).write_bytes(content)
                Path(path).chmod(mode)


def _forget(error: BaseException | None) -> None:
    """Drop what the frames of a command hold: an open file that nobody closed is locked as long as
    it is there.
    """
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__


def _read(folder: Path) -> dict[str, tuple[int, bytes] | None]:
    """The files below a folder, with mode and content; None for a folder.

    At every step, so `Path`s are too slow.
    """
    found: dict[str, tuple[int, bytes] | None] = {}
    for place, folders, names in os.walk(folder):
        found |= dict.fromkeys(f"{place}/{name}" for name in folders)
        for name in names:
            with open(f"{place}/{name}", "rb", buffering=0) as file:  # noqa: PTH123 - see above
                found[file.name] = stat.S_IMODE(os.fstat(file.fileno()).st_mode), file.read()
    return found


class InProcess(Job):
    """A job whose commands run in the process of the tests. What they are `under` is a `Killer`."""

    every: ClassVar[bool] = False
    """Whether it is killed at steps, too, where a kill leaves just what it left at the step
    before.
    """

    def run(self, *words: str, under: Any = (), **environ: str | None) -> Done:
        killer = under if isinstance(under, Killer) else Killer()
        folder = self.terminal.home.parent
        # On a machine that stands still for half a minute a second attempt would be one more step.
        environ = {"SEALPIPE_DEADLINE": "1h", **environ}
        return killer.run(words, folder, self.terminal.here, self.terminal.with_environ(environ))

    def steps(
        self, log: Path, run: Callable[[Any], Done], *_: object, code: int = 0
    ) -> list[Point]:
        """The steps of a command that nobody disturbs, then one beyond."""
        del log  # for strace
        killer = Killer(every=self.every)
        done = run(killer)
        assert done.code == code, done
        return [*killer.steps, NEVER]

    def killing(self, point: Point, log: Path, signal: str = "SIGKILL") -> Any:
        del log
        assert signal == "SIGKILL", "no other signal can be had in one process"
        return Killer(point)
