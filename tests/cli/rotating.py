"""A CI job that rotates a password: a new one is stored in a dotenv file, and shared with whoever
needs it.
"""

from __future__ import annotations

from collections.abc import Sequence

from support.job import Job
from support.terminal import Done, opened

FILE = "x"
BEFORE = "OTHER=kept\n"


class Rotating(Job):
    """`share` draws, stores and shares; `opens` tells whether a link shows what is stored."""

    def share(self, *words: str, under: Sequence[str] = (), **environ: str | None) -> Done:
        self.terminal.file(FILE, BEFORE)
        target = f"dotenv:{FILE}?mode=merge#PW=Password"
        field = ("-f", "Password=gen:password?symbols=0")
        return self.run("share", *field, "--also-to", target, *words, under=under, **environ)

    def opens(self, link: str) -> bool:
        before, _, new = self._content().partition("PW=")
        return (
            before == BEFORE
            and opened(self.service, link) == {"Password": new.removesuffix("\n")}
            and self._alone()
        )

    def untouched(self) -> bool:
        return self._content() == BEFORE and self._alone()

    def _content(self) -> str:
        return (self.terminal.here / FILE).read_text()

    def _alone(self) -> bool:
        return [path.name for path in self.terminal.here.iterdir()] == [FILE]
