"""Where third parties declare their plugins: the entry points of installed distributions."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from sealpipe.registry.hooks import GROUP

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_HEADING: Final = b"[sealpipe]"
_ENDINGS: Final = (".dist-info", ".egg-info")
_PATH_FINDERS: Final = ("_frozen_importlib", "importlib_metadata")
"""Modules of finders that search `sys.path` alone: Python's own, and its backport's."""


def are_declared() -> bool:
    """Return whether a third party's plugin may be installed.

    It costs a fiftieth of `importlib.metadata`.

    If this cannot decide, it returns True.
    """
    other_finders = (
        each
        for each in sys.meta_path
        if not str(getattr(each, "__module__", "")).startswith(_PATH_FINDERS)
    )
    if any(hasattr(finder, "find_distributions") for finder in other_finders):
        return True  # elsewhere
    return any(_HEADING in text for text in _declarations())


def find_entry_points() -> list[EntryPoint]:
    """Return every entry point of the group, by name and value."""
    if not are_declared():
        return []
    from importlib.metadata import entry_points  # expensive: only if needed

    return sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))


def read_origin(point: EntryPoint) -> tuple[str, str]:
    """Return the name and the version of an entry point's distribution.

    The version is empty if it has none.
    """
    if point.dist is None:
        return point.module, ""
    try:
        return point.dist.name, point.dist.version or ""
    except KeyError:  # Python 3.15: its metadata has no version
        return point.dist.name, ""


def _declarations() -> Iterator[bytes]:
    for folder in dict.fromkeys(sys.path):
        try:
            names = os.listdir(folder or ".")  # noqa: PTH208 - as text: there may be hundreds
        except NotADirectoryError:
            yield _HEADING  # an archive, such as a zip file
            continue
        except OSError:
            continue
        for name in names:
            if name.lower().endswith(_ENDINGS):
                try:
                    path = os.path.join(folder, name, "entry_points.txt")  # noqa: PTH118
                    with open(path, "rb") as file:  # noqa: PTH123
                        yield file.read()
                except OSError:
                    continue
