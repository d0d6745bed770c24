"""Judges of what a command leaves on this machine: every file of a folder, every path written to,
every dotenv file.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dotenv import dotenv_values

from support.parts import program
from support.terminal import PATIENCE

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = {
    "os.mkdir": 1,
    "os.rename": 2,
    "os.link": 2,
    "os.symlink": 2,
    "os.remove": 1,
    "os.rmdir": 1,
}
_CHANGES |= {
    "os.truncate": 1,
    "os.chmod": 1,
    "os.chown": 1,
    "os.utime": 1,
    "os.mkfifo": 1,
    "os.mknod": 1,
}
_STARTS = (
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.fork",
    "os.forkpty",
    "os.startfile",
)
_SHELLS = (("dash",), ("bash", "--norc"))


class Watch:
    """Notes each path that this process changes, and each program that it starts, while it is
    `on`.
    """

    def __init__(self, *folders: Path) -> None:
        self._folders = tuple(os.path.realpath(folder) + os.sep for folder in folders)
        self.seen: list[str] = []
        self._on = False
        sys.addaudithook(self._hook)  # for good: there is no way to take it off

    @contextmanager
    def on(self) -> Iterator[None]:
        """What is changed meanwhile lies in the folders, and no program is started.

        Raises AssertionError.
        """
        self.seen.clear()
        self._on = True
        try:
            yield
        finally:
            self._on = False
        assert not self.seen, f"outside of every target: {self.seen[:5]!a}"

    def _hook(self, event: str, given: tuple[Any, ...]) -> None:
        if not self._on:
            return
        if event in _STARTS:
            self.seen.append(f"{event} {given!a}")
        elif event == "open" and isinstance(given[2], int) and given[2] & _WRITES:
            self._look(event, given[0])
        elif event in _CHANGES:
            for path in given[: _CHANGES[event]]:
                self._look(event, path)

    def _look(self, event: str, path: object) -> None:
        if isinstance(path, str | bytes | os.PathLike):
            name = os.fsdecode(path)
            folder, _, last = name.rpartition("/")
            # By its folder: what stands there itself may be a link, and is never followed where it
            # is written.
            # As text, it may be no path.
            real = os.path.join(os.path.realpath(folder or "."), last)  # noqa: PTH118
            known = any(f"{real}/".startswith(folder) for folder in self._folders)
            if (
                not known
                and "__pycache__" not in real
                and not (name.startswith("/proc/self/fd/") and last.isdigit())
            ):
                self.seen.append(f"{event} {name!a}")


def files_in(folder: Path) -> dict[str, bytes]:
    """Every file below, by its path: all are plain ones, 0600, and in folders of 0700."""
    found = {}
    for place, folders, files in os.walk(folder):
        for name in folders:
            about = os.lstat(os.path.join(place, name))  # noqa: PTH118 - thousands of times
            assert stat.S_ISDIR(about.st_mode), (place, name)
            assert stat.S_IMODE(about.st_mode) == 0o700, (place, name, oct(about.st_mode))
        for name in files:
            path = os.path.join(place, name)  # noqa: PTH118
            about = os.lstat(path)
            assert stat.S_ISREG(about.st_mode), path
            assert stat.S_IMODE(about.st_mode) == 0o600, (path, oct(about.st_mode))
            with open(path, "rb") as file:  # noqa: PTH123
                found[os.path.relpath(path, folder)] = file.read()
    return found


def dotenv_says(wanted: Mapping[Path, Mapping[str, str]]) -> None:
    """Each file sets what it is to, and nothing else, for sh, for bash and for python-dotenv."""
    for path, values in wanted.items():
        assert dotenv_values(path) == values, path
    if wanted:
        for shell in _SHELLS:
            for path, found in zip(wanted, _exported(shell, list(wanted)), strict=True):
                assert found == wanted[path], (shell, path, found)


def _exported(shell: Sequence[str], paths: Sequence[Path]) -> Iterator[dict[str, str]]:
    """The variables that each file adds to the environment, in a shell of its own, which complains
    about nothing.
    """
    folder = paths[0].parent
    said = "printf '\\001\\002\\003'\n"
    script = "".join(
        f"(set -a; . '{path}' || exit 9; exec env -0) || exit 9\n{said}"
        for path in [os.devnull, *paths]
    )
    done = subprocess.run(
        [program(shell[0]), *shell[1:], "-c", script],
        env={"PATH": os.defpath, "LC_ALL": "C.UTF-8", "HOME": str(folder)},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b""), (shell, done.stderr[:2000])
    before, *found = map(_variables, done.stdout.split(b"\1\2\3")[:-1])
    for each in found:
        yield {name: value for name, value in each.items() if before.get(name) != value}
        assert before.keys() <= each.keys()


def _variables(printed: bytes) -> dict[str, str]:
    pairs = (
        line.partition("=") for line in printed.decode("utf-8", "surrogateescape").split("\0")[:-1]
    )
    return {name: value for name, _, value in pairs if name != "_"}
