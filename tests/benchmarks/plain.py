"""A virtual environment as `pip install sealpipe` makes it: sealpipe and what it needs, no extras,
no test tools.

Nothing is installed: the files of those distributions are linked from the running environment.
"""

from __future__ import annotations

import sysconfig
import venv
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement


def make(folder: Path) -> Path:
    """Make it in a folder; returns its Python."""
    venv.EnvBuilder(symlinks=True).create(folder)
    packages = Path(
        sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)})
    )
    for name in _needed("sealpipe", set()):
        found = distribution(name)
        for top in {
            file.parts[0]
            for file in found.files or ()
            if file.parts[0] not in ("..", "__pycache__")
        }:
            target = packages / top
            if not target.exists():
                target.symlink_to(Path(str(found.locate_file(top))))
    return folder / "bin" / "python"


def _needed(name: str, seen: set[str]) -> set[str]:
    """A distribution and all that it requires here, without extras."""
    if name in seen:
        return seen
    try:
        required = distribution(name).requires or []
    except PackageNotFoundError:
        return seen
    seen.add(name)
    for requirement in map(Requirement, required):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            _needed(requirement.name, seen)
    return seen
