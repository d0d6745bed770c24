"""Finds a command's program, refuses one that cannot be started, and reads how it ended."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Mapping, Sequence
from typing import NoReturn

from sealpipe.errors import UsageError


def find_command(argv: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return the path of a command's program. UsageError if there is none: before anything is read for it."""
    if not argv:
        raise UsageError("no command is given", remedy="add it after --")
    found = shutil.which(argv[0], path=environ.get("PATH", os.defpath))
    if found is None:
        exists = os.path.dirname(argv[0]) and os.path.exists(argv[0])  # noqa: PTH110, PTH120 - as the system finds it
        number = errno.EACCES if exists or not argv[0] else errno.ENOENT
        refuse_command(argv[0], OSError(number, os.strerror(number)))
    return found


def refuse_command(name: str, error: OSError) -> NoReturn:
    """Raise UsageError: the command cannot be started."""
    remedy = "check its name, and that it is on PATH" if error.errno == errno.ENOENT else ""
    if error.errno == errno.E2BIG:
        remedy = "its variables are too large: Linux allows 128 KiB each; pass a large value in a file"
    shown = name.encode("unicode_escape").decode() if not name.isprintable() else name
    raise UsageError(f"{shown} cannot be run: {error.strerror}", remedy=remedy) from None


def to_exit_code(status: int) -> int:
    """Return an exit code for what `Popen.wait` returns: 128+N after signal N."""
    return status if status >= 0 else 128 - status
