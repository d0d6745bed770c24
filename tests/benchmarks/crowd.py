"""Distributions with a plugin each, as pip leaves them: a module with a hook, and what says that it
is there.
"""

from __future__ import annotations

from pathlib import Path

MODULE = """\
from sealpipe.plugin import SourceInfo, hookimpl


@hookimpl
def sealpipe_sources(register):
    factory, needs = "{name}_source:Source", ("some-sdk>=2",)
    register(SourceInfo("{name}", "a source of somebody's", factory, needs=needs))
"""


def install(folder: Path, count: int) -> Path:
    """As many of them in a new folder; the folder, for PYTHONPATH."""
    folder.mkdir()
    for number in range(count):
        name = f"somebodys_{number}"
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[sealpipe]\n{name} = {name}\n")
        (folder / f"{name}.py").write_text(MODULE.format(name=name))
    return folder
