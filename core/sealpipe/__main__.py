"""The entry point: `sealpipe` and `python -m sealpipe`.

Hardens the process before anything else is imported: no core file, no access to its memory, no
credential in its visible environment. Only for the command line: programs that use the library
decide for themselves.
"""

from __future__ import annotations

import gc
import os
import sys

_GC_THRESHOLD = 100_000
"""New objects before a garbage collection.

Imports make many objects and no garbage (Python's default is 700).
"""


def main() -> None:
    """Run the command line.

    `--version` does not load it, because scripts often ask for the version first.
    """
    if sys.argv[1:] == ["--version"]:
        from sealpipe.version import __version__

        sys.stdout.write(f"sealpipe {__version__}\n")
        return
    from sealpipe import signals

    signals.exit_on_signals()
    harden()
    block_modules()
    gc.set_threshold(_GC_THRESHOLD)
    from sealpipe.cli.main import run

    code = run(sys.argv[1:])
    if signals.was_interrupted():
        signals.exit_without_threads(code)
    gc.freeze()  # so that the interpreter's last collection has nothing to do
    sys.exit(code)


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
    from contextlib import suppress  # imported here and below: `--version` does not need it

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
    from contextlib import suppress
    from pathlib import Path

    with suppress(OSError, ValueError, IndexError):
        status = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
        start, end = int(status[_ENV_START]), int(status[_ENV_END])
        memory = os.open("/proc/self/mem", os.O_RDWR | os.O_CLOEXEC)
        try:
            _overwrite(memory, start, os.pread(memory, end - start, start), names)
        finally:
            os.close(memory)


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
    from contextlib import suppress

    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


_BLOCKED_MODULES = ("trio", "httpx._main")
"""Modules that httpcore and httpx import if they are installed, and no command needs: trio (0.1 s,
and a run of ldconfig with our environment), and httpx's command line with rich and pygments (0.07
s). Neither can be disabled."""


def block_modules() -> None:
    """Make imports of these modules fail, which httpcore and httpx handle."""
    for name in _BLOCKED_MODULES:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
