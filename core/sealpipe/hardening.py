"""Keeps the credential of a command from other processes of the same user.

No core file, no access to its memory, no credential in its visible environment. Imports little: it
runs before anything else is loaded.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

CREDENTIALS = ("SEALPIPE_API_KEY", "SEALPIPE_API_KEY_PREVIOUS")
_PR_SET_DUMPABLE = 4
_ENV_START, _ENV_END = 47, 48
"""Fields of /proc/self/stat, after the process name: bounds of the environment that the process
started with.
"""


def harden() -> None:
    """Erase the credential from the visible environment, and deny access to other processes.

    Skips what the system does not support. `os.environ` keeps its own copy.
    """
    for name in [name for name in os.environ if name.startswith("SEALPIPE_")]:
        with suppress(OSError):
            # For code that starts programs without an explicit environment, like some SDKs.
            os.unsetenv(name)
    # Before _forbid_dumps: after it, only root can write there.
    _erase([name for name in CREDENTIALS if name in os.environ])
    if not _forbid_dumps():
        _forbid_core_files()


def _erase(names: list[str]) -> None:
    """Overwrite the values in the memory that /proc/PID/environ shows; unsetenv does not."""
    if not names or sys.platform != "linux":
        return
    with suppress(OSError, ValueError, IndexError):
        status = _read("/proc/self/stat").rpartition(b")")[2].split()
        start, end = int(status[_ENV_START]), int(status[_ENV_END])
        memory = os.open("/proc/self/mem", os.O_RDWR | os.O_CLOEXEC)
        try:
            _overwrite(memory, start, os.pread(memory, end - start, start), names)
        finally:
            os.close(memory)


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


def _overwrite(memory: int, start: int, block: bytes, names: list[str]) -> None:
    place = 0
    for entry in block.split(b"\0"):
        name, equals, value = entry.partition(b"=")
        if equals and os.fsdecode(name) in names:
            os.pwrite(memory, bytes(len(value)), start + place + len(name) + 1)
        place += len(entry) + 1


def _forbid_dumps() -> bool:
    """Forbid core files, and make root the owner of /proc/PID, so that this user cannot read it.

    Linux only.
    """
    if sys.platform != "linux":
        return False
    try:
        # The module behind ctypes, for a tenth of its import time, which every command would pay.
        from _ctypes import call_function, dlopen, dlsym

        # None is this process itself.
        prctl = dlsym(dlopen(None, 0), "prctl")  # type: ignore[arg-type]
        return bool(call_function(prctl, (_PR_SET_DUMPABLE, 0, 0, 0, 0)) == 0)
    except (ImportError, OSError):
        return False


def _forbid_core_files() -> None:
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
