"""The entry point: `sealpipe` and `python -m sealpipe`.

Hardens the process before anything else is imported: no core file, no access to its memory, no
credential in its visible environment. Only for the command line: programs that use the library
decide for themselves.
"""

from __future__ import annotations

import gc
import sys

from sealpipe.version import __version__

_GC_THRESHOLD = 100_000
"""New objects before a garbage collection.

Imports make many objects and no garbage (Python's default is 700).
"""


def main() -> None:
    """Run the command line.

    `--version` does not load it, because scripts often ask for the version first.
    """
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"sealpipe {__version__}\n")
        return
    from sealpipe import hardening, signals

    signals.exit_on_signals()
    hardening.harden()
    block_modules()
    gc.set_threshold(_GC_THRESHOLD)
    from sealpipe.cli.main import run

    code = run(sys.argv[1:])
    if signals.find_first() is not None:
        signals.exit_without_threads(code)
    gc.freeze()  # so that the interpreter's last collection has nothing to do
    sys.exit(code)


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
