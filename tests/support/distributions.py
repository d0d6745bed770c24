"""Distributions with plugins, as pip leaves them and without pip; and machines whose administrator
enforces something.

A machine is the real command line, with its config file somewhere else.
"""

from __future__ import annotations

import itertools
import os
import sys
import traceback
from pathlib import Path
from textwrap import dedent
from types import ModuleType

from support.terminal import Done, Terminal

_NUMBERS = itertools.count()

SOURCE = """
from sealpipe.plugin import SourceInfo, hookimpl

@hookimpl
def sealpipe_sources(register):
    register(SourceInfo({name!r}, "a test", "MODULE_it:It"{more}))
"""


class Site:
    """The folder: on `sys.path`, or in PYTHONPATH, what is installed in it can be found."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def path(self) -> str:
        """For PYTHONPATH, before what this process has there."""
        return os.pathsep.join(filter(None, [str(self.folder), os.environ.get("PYTHONPATH")]))

    def install(
        self, point: str, hooks: str, it: str = "", *, version: str = "1.0", names: str = ""
    ) -> str:
        """A distribution with the entry point `point`; the name of its module.

        That module is `hooks`, the one beside it is `it`; MODULE stands for its name in both.
        `names` is what the entry point names, where that is not the module.
        """
        module = f"others_{next(_NUMBERS)}"
        info = self.folder / f"{module}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {module}\nVersion: {version}\n"
        )
        target = (names or "MODULE").replace("MODULE", module)
        (info / "entry_points.txt").write_text(f"[sealpipe]\n{point} = {target}\n")
        for name, code in ((module, hooks), (f"{module}_it", it)):
            (self.folder / f"{name}.py").write_text(dedent(code).replace("MODULE", module))
        return module

    def source(self, name: str, it: str, *, point: str = "", more: str = "") -> str:
        """A distribution with one source, whose module defines the class `It`."""
        head = "from sealpipe.plugin import *\n"
        return self.install(point or name, SOURCE.format(name=name, more=more), head + dedent(it))


def of(module: str) -> ModuleType:
    """The module of a source, once it is imported."""
    return sys.modules[f"{module}_it"]


def told(error: BaseException) -> str:
    """All that an error says, with what is behind it: as any handler could print it."""
    attributes = [
        vars(each) for each in (error, error.__cause__, error.__context__) if each is not None
    ]
    return "".join(traceback.format_exception(error)) + repr(attributes)


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
        return self.user.sealpipe(*words, stdin=stdin, machine=self.config, **environ)


def lists(**named: list[str]) -> str:
    """A machine's policy that allows nothing but what is named."""
    every = {"sources": [], "sinks": [], "recipients": [], "tools": [], **named}
    return "".join(
        f"{name} = [{', '.join(repr(each) for each in values)}]\n" for name, values in every.items()
    )
