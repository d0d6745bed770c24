"""A job that calls actions/_setup/setup.sh as the actions do, with a PATH of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from support.github_log import command, pairs, read_lines
from support.parts import missing, program

PARTS = ("pyproject.toml", "LICENSE", "core", "plugins", "actions")
"""Of the checkout, what an installation reads."""

PROGRAMS = (
    *("awk", "bash", "cut", "find", "grep", "ln", "mkdir", "mktemp"),
    *("rm", "sed", "sh", "sha256sum", "sort", "tr", "uname", "xargs"),
)
"""Everything that setup.sh starts beside Python and uv."""

QUICK = """#!/bin/sh
for word; do shift; [ "$word" = --compile-bytecode ] || set -- "$@" "$word"; done
exec '{}' "$@"
"""
OLD = "import sys; sys.version_info = (3, 9, 18); exec(sys.argv.pop(1))"


@dataclass(frozen=True, slots=True)
class Done:
    """A call: `text` is what it wrote, `handed_on` what it wrote into GITHUB_OUTPUT."""

    code: int
    text: str
    handed_on: list[tuple[str, str]]
    seconds: float

    @property
    def executable(self) -> Path:
        """The path of sealpipe: the one thing that is handed on."""
        assert self.code == 0, self.text
        ((name, path),) = self.handed_on
        assert name == "executable"
        return Path(path)

    @property
    def error(self) -> str:
        """The one annotation, where it was refused and handed on nothing but that."""
        assert (self.code, self.handed_on) == (2, [("error-code", "2")]), self.text
        found = [each for line in read_lines(self.text) if (each := command(line))]
        (error,) = [each.data for each in found if each.name == "error"]
        return error


class SetUp:
    """One job: a home, RUNNER_TEMP (with a blank in its name) and `tools`, which is its PATH."""

    def __init__(self, place: Path, checkout: Path, environ: Mapping[str, str]) -> None:
        self.temp, self.home, self.tools = place / "runner temp", place / "home", place / "tools"
        self.work, self.script = place / "work", checkout / "actions/_setup/setup.sh"
        for folder in (self.temp, self.home, self.tools, self.work):
            folder.mkdir(parents=True, exist_ok=True)
        for name in PROGRAMS:
            found = shutil.which(name, path="/usr/bin:/bin") or missing(f"{name} is not installed")
            (self.tools / name).symlink_to(found)
        self._output = place / "output"
        self.environ = {
            "PATH": str(self.tools),
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(checkout / "actions" / "share"),
            "GITHUB_OUTPUT": str(self._output),
            "RUNNER_TEMP": str(self.temp),
            **environ,
        }

    def __call__(
        self, extras: str = "", installer: str = "auto", executable: str = "", **environ: str
    ) -> Done:
        """Call it, and wait."""
        self._output.write_text("")
        began = time.monotonic()
        with self.start(extras, installer, executable, **environ) as process:
            out, _ = process.communicate(timeout=240)
        seconds = time.monotonic() - began
        return Done(process.returncode, out, pairs(self._output.read_text()), seconds)

    def start(
        self, extras: str = "", installer: str = "auto", executable: str = "", **environ: str
    ) -> subprocess.Popen[str]:
        """Call it; both streams come as one."""
        given = {
            "SEALPIPE_SETUP_EXTRAS": extras,
            "SEALPIPE_SETUP_INSTALLER": installer,
            "SEALPIPE_SETUP_EXECUTABLE": executable,
        }
        bash = [str(self.tools / "bash"), "--noprofile", "--norc", str(self.script)]
        environ = {
            name: value for name, value in (self.environ | given | environ).items() if value != "-"
        }
        pipe = subprocess.PIPE
        return subprocess.Popen(
            bash,
            env=environ,
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def add(self, name: str, script: str) -> Path:
        """A program of that name, first in PATH."""
        file = self.tools / name
        file.unlink(missing_ok=True)
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
        return file

    def left(self) -> list[str]:
        """What is in RUNNER_TEMP."""
        return sorted(each.name for each in self.temp.iterdir())


def own_tool(tools: Path, tool: str) -> None:
    """Put `uv`, or a Python of that name, into the PATH; `old:NAME` is one that is too old, and
    `quick:uv` compiles nothing, which takes longer than all else.
    """
    name = tool.removeprefix("old:").removeprefix("quick:")
    if tool == "quick:uv":
        (tools / name).write_text(QUICK.format(program("uv")))
        (tools / name).chmod(0o755)
        return
    if name == "uv":
        (tools / name).symlink_to(program("uv"))
        return
    script = f"exec '{sys.executable}' \"$@\""
    if tool != name:
        script = (
            f'if [ "$2" = -c ]; then code=$3; shift 3; set -- -I -c "{OLD}" "$code" "$@"; fi\n'
            f"{script}"
        )
    (tools / name).write_text(f"#!/bin/sh\n{script}\n")
    (tools / name).chmod(0o755)
