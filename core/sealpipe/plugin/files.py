"""Opening a file that a reference names: the one gate of every source that reads a path.

What the kernel shows of processes (`/proc/PID/environ`, `mem`, `cmdline` ...) is no place of a secret, and holds this
process's own: the credential among them. It is refused whatever path leads there, for the opened descriptor is what is
looked at: a link, `/dev/fd/3` and another mount of it are the same.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

from sealpipe.errors import ReferenceValueError

_PROC: Final = 0x9FA0
"""The file system's number (Linux: `PROC_SUPER_MAGIC`)."""


def open_file(path: str | Path, what: object) -> BinaryIO:
    """The file, to be read. Raises OSError, and ReferenceValueError, naming `what`, where it tells of processes."""
    stream: BinaryIO = open(path, "rb")  # noqa: PTH123, SIM115 - a path as it was given: Path would drop a leading ./
    try:
        refuse_process_file(stream.fileno(), what)
    except BaseException:
        stream.close()
        raise
    return stream


def refuse_process_file(descriptor: int, what: object) -> None:
    """ReferenceValueError where an open file is one by which the kernel tells of processes."""
    if _tells_of_processes(descriptor):
        raise ReferenceValueError(
            f"{what} is in /proc, which exposes processes (this one's credential, too) and is never shared",
            remedy="name the file or the variable that the secret comes from",
        )


def _tells_of_processes(descriptor: int) -> bool:
    found = os.fstat(descriptor)
    if os.major(found.st_dev) or not stat.S_ISREG(found.st_mode):
        return False  # a disk's; a pipe's; a device
    try:
        if found.st_dev == os.stat("/proc").st_dev:  # noqa: PTH116 - the same call as for the descriptor
            return True
    except OSError:
        return False  # a system without one
    return _file_system(descriptor) == _PROC


def _file_system(descriptor: int) -> int | None:
    """The number of the file system that an open file is on; None where nobody tells."""
    import ctypes  # for files that are on no disk only

    answer = ctypes.create_string_buffer(512)
    try:
        if ctypes.CDLL(None).fstatfs(descriptor, answer) != 0:
            return None
    except (OSError, AttributeError):
        return None
    return int(ctypes.c_long.from_buffer(answer).value)
