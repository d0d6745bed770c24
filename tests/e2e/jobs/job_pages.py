"""A page of docs/how-to that tells a whole job: its files and commands, run as they are printed."""

from __future__ import annotations

import re
from pathlib import Path

from support.ci_jobs import forked_sealpipe
from support.parts import ROOT
from support.terminal import Done, Terminal


class JobPage:
    """The page, and the user who follows it in bash, with a sealpipe that starts quickly."""

    def __init__(self, name: str, user: Terminal) -> None:
        text = (ROOT / f"docs/how-to/{name}.md").read_text(encoding="utf-8")
        blocks = re.findall(r"^```(\w+)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        self.user = user
        self._blocks = blocks
        self._run: set[int] = set()
        programs = user.home / "programs"
        programs.mkdir()
        forked_sealpipe(programs)
        user.environ["PATH"] = f"{programs}:{user.environ['PATH']}"

    @property
    def programs(self) -> Path:
        """A folder that comes first in PATH."""
        return self.user.home / "programs"

    def block(self, language: str, number: int = 1) -> str:
        """The page's block of a language, from 1."""
        return [text for kind, text in self._blocks if kind == language][number - 1]

    def run(self, number: int = 0, **environ: str) -> Done:
        """Run the commands of a block of `sh`: of the next one that was not run, or of a number."""
        shell = [at for at, (kind, _) in enumerate(self._blocks) if kind == "sh"]
        at = shell[number - 1] if number else next(each for each in shell if each not in self._run)
        self._run.add(at)
        words = ["bash", "-euo", "pipefail", "-c", self._blocks[at][1]]
        return self.user.run(words, environ=environ)

    @property
    def is_run(self) -> bool:
        """Whether each block of commands was run."""
        shell = {at for at, (kind, _) in enumerate(self._blocks) if kind == "sh"}
        return shell == self._run
