"""Distributions with plugins, installed into a folder: as pip leaves them, and without pip."""

from __future__ import annotations

import itertools
import os
import sys
import traceback
from pathlib import Path
from textwrap import dedent
from types import ModuleType

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

    def install(self, point: str, hooks: str, it: str = "", *, version: str = "1.0", names: str = "") -> str:
        """A distribution with the entry point `point`; the name of its module.

        That module is `hooks`, the one beside it is `it`; MODULE stands for its name in both. `names` is what the entry
        point names, where that is not the module.
        """
        module = f"others_{next(_NUMBERS)}"
        info = self.folder / f"{module}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: {version}\n")
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
    attributes = [vars(each) for each in (error, error.__cause__, error.__context__) if each is not None]
    return "".join(traceback.format_exception(error)) + repr(attributes)
