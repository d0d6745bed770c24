"""The command that installs packages where sealpipe is installed.

By pip, pipx or uv, or in its image.

Each is told by the file that it documents in the environment: pipx `pipx_metadata.json`, `uv tool`
`uv-receipt.toml`, `uv venv` a key in `pyvenv.cfg`, and our image `sealpipe-image`. Nothing is run.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import Final

IMAGE_MARKER: Final = "sealpipe-image"
"""File in the image's environment (containers/Dockerfile)."""

WITHOUT_WHEEL: Final = {"sealpipe[op]": ("onepassword-sdk", (3, 14))}
"""Extras that install nothing from a version of Python on, because a library has no wheel for it;
as pyproject.toml.
"""

_EXTRA: Final = re.compile(r"sealpipe\[([a-z]+)\]")


def format_command(
    packages: Sequence[str], prefix: str | None = None, *, has_pip: bool | None = None
) -> str:
    """Return the command that installs packages, such as `sealpipe[vault]`; empty if there is none.

    `prefix` is an environment, by default this process's, and `has_pip` whether it has pip. If a
    library has no wheel for this version of Python, the text begins with the version to use.
    """
    if not packages:
        return ""
    command = _format_command(packages, prefix, has_pip=has_pip)
    for library, (major, minor) in (
        WITHOUT_WHEEL[each] for each in packages if each in WITHOUT_WHEEL
    ):
        if sys.version_info >= (major, minor):
            here = ".".join(map(str, sys.version_info[:2]))
            return (
                f"use Python {major}.{minor - 1} ({library} has no wheel for {here}) and run "
                f"{command}"
            )
    return command


def _format_command(packages: Sequence[str], prefix: str | None, *, has_pip: bool | None) -> str:
    place = Path(sys.prefix if prefix is None else prefix)
    words = [f"'{each}'" for each in packages]
    if (place / IMAGE_MARKER).exists():
        return _format_build(packages)
    if (place / "pipx_metadata.json").exists():
        return " ".join(["pipx inject sealpipe", *words])
    if (place / "uv-receipt.toml").exists():
        return " ".join(["uv tool install", *(f"--with {word}" for word in words), "sealpipe"])
    if has_pip is None:
        has_pip = find_spec("pip") is not None
    is_made_by_uv = (
        not has_pip and re.search(r"(?m)^uv *=", _read(place / "pyvenv.cfg")) is not None
    )
    return " ".join([f"{'uv ' if is_made_by_uv else ''}pip install", *words])


def _format_build(packages: Sequence[str]) -> str:
    """Return what adds the packages to the image.

    Its extras are chosen when it is built, and it has no pip.
    """
    extras = [match[1] for each in packages if (match := _EXTRA.fullmatch(each))]
    if len(extras) == len(packages):
        return f"build the image with {quote(' '.join(extras))} in --build-arg EXTRAS=..."
    return f"build an image of your own that also has {' '.join(packages)}"


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
