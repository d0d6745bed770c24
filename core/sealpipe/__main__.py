"""The way in: `sealpipe` and `python -m sealpipe`."""

from __future__ import annotations

import gc
import sys

_OBJECTS = 100_000
"""New objects until garbage is collected: imports make many, and none of it is garbage (700 would be Python's own)."""

_NEVER_LOADED = ("trio", "httpx._main")
"""What httpcore and httpx import wherever it is installed, and need for nothing that a command does: an event loop
(0.1 s, and a run of ldconfig), and httpx's own command line with rich and pygments (0.07 s). Neither has a switch."""


def main() -> None:
    """Run the command line. The version is told without loading it: scripts ask for it first of all."""
    if sys.argv[1:] == ["--version"]:
        from sealpipe import __version__

        sys.stdout.write(f"sealpipe {__version__}\n")
        return
    from sealpipe.cli.context import harden

    harden()
    leave_out()
    gc.set_threshold(_OBJECTS)
    from sealpipe.cli import run

    code = run(sys.argv[1:])
    gc.freeze()  # the interpreter's last collection has nothing to look through
    sys.exit(code)


def leave_out() -> None:
    """Have httpx and httpcore imported without those."""
    for name in _NEVER_LOADED:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
