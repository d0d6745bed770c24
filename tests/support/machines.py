"""A machine whose administrator enforces something: the real command line, with its config file somewhere else."""

from __future__ import annotations

import sys

from support.terminal import Done, Terminal

_ELSEWHERE = """
import sys
from pathlib import Path
from sealpipe import config
config.MACHINE = Path(sys.argv.pop(1))
from sealpipe.__main__ import main
sys.exit(main())
"""

ALLOWS_ALL = 'sources = ["*"]\nsinks = ["*"]\nrecipients = ["*"]\ntools = ["*"]\n'


class Machine:
    """`enforce` writes the machine's config file; `sealpipe` runs a command of the user's on it."""

    def __init__(self, user: Terminal) -> None:
        self.user = user
        self.config = user.home / "machine.toml"
        self.policy = user.home / "machine-policy.toml"
        self.audit = user.home / "machine-audit.jsonl"

    def enforce(self, text: str) -> Machine:
        self.config.write_text(text)
        return self

    def allow(self, rules: str, *, audit: bool = False, more: str = "") -> Machine:
        """A policy with these rules."""
        self.policy.write_text(rules)
        told = f'[enforce.audit]\nfile = "{self.audit}"\nrequired = true\n' if audit else ""
        return self.enforce(f'[enforce.policy]\nfile = "{self.policy}"\n{told}{more}')

    def sealpipe(self, *words: str, stdin: str = "", **environ: str | None) -> Done:
        return self.user.run([sys.executable, "-c", _ELSEWHERE, str(self.config), *words], stdin=stdin, environ=environ)


def lists(**named: list[str]) -> str:
    """A machine's policy that allows nothing but what is named."""
    every = {"sources": [], "sinks": [], "recipients": [], "tools": [], **named}
    return "".join(f"{name} = [{', '.join(repr(each) for each in values)}]\n" for name, values in every.items())
