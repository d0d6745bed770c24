"""Where third parties' plugins are declared: entry points of installed distributions."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "sealpipe"
_HEADING: Final = b"[sealpipe]"
_ENDINGS: Final = (".dist-info", ".egg-info")


def are_declared() -> bool:
    """Whether any may be, at a fiftieth of what `importlib.metadata` costs: that is asked where this cannot tell."""
    # Python's own finder looks along sys.path; another one may find distributions elsewhere.
    own_finders = (each for each in sys.meta_path if "_frozen_importlib" not in str(getattr(each, "__module__", "")))
    if any(hasattr(finder, "find_distributions") for finder in own_finders):
        return True
    return any(_HEADING in text for text in _declarations())


def find_entry_points() -> list[EntryPoint]:
    """Every entry point of the group, by name and value."""
    from importlib.metadata import entry_points  # 160 million instructions: only where it is needed

    return sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))


def _declarations() -> Iterator[bytes]:
    for folder in dict.fromkeys(sys.path):
        try:
            names = os.listdir(folder or ".")  # noqa: PTH208 - as text: there may be hundreds
        except NotADirectoryError:
            yield _HEADING  # an archive
            continue
        except OSError:
            continue
        for name in names:
            if name.lower().endswith(_ENDINGS):
                try:
                    with open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:  # noqa: PTH118, PTH123
                        yield file.read()
                except OSError:
                    continue
