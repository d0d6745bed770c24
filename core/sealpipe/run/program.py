"""Finds a command's program, refuses one that cannot be started, and reads how it ended."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn

from sealpipe.errors import UsageError

_REMEDIES: Final[Mapping[int, str]] = {
    errno.ENOENT: "check its name, and that it is on PATH",
    errno.EACCES: "check that it is a program, and that you may run it",
    errno.E2BIG: (
        "its variables are too large: Linux allows 128 KiB each; pass a large value in a file"
    ),
}
_LINE: Final = (
    "leave out the quotes around command and arguments: each is a word of its own; for a line of a "
    "shell, write -- sh -c '...'"
)


def find_command(argv: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return the path of a command's program.

    UsageError if there is none: before anything is read for it.
    """
    if not argv:
        raise UsageError("no command is given", remedy="add it after --")
    found = shutil.which(argv[0], path=environ.get("PATH", os.defpath))
    if found is None:
        # As the system finds it.
        exists = os.path.dirname(argv[0]) and os.path.exists(argv[0])  # noqa: PTH110, PTH120
        number = errno.EACCES if exists or not argv[0] else errno.ENOENT
        refuse_command(argv[0], OSError(number, os.strerror(number)))
    return found


def refuse_command(name: str, error: OSError) -> NoReturn:
    """Raise UsageError: the command cannot be started."""
    is_line = error.errno == errno.ENOENT and len(name.split()) > 1
    remedy = _LINE if is_line else _REMEDIES.get(error.errno or 0, "")
    shown = name.encode("unicode_escape").decode() if not name.isprintable() else name
    raise UsageError(
        f"{shlex.quote(shown)} cannot be run: {error.strerror}", remedy=remedy
    ) from None


def to_exit_code(status: int) -> int:
    """Return an exit code for what `Popen.wait` returns: 128+N after signal N."""
    return status if status >= 0 else 128 - status
