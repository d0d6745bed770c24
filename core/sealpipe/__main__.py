"""The way in: `sealpipe` and `python -m sealpipe`."""

from __future__ import annotations

import gc
import sys

_OBJECTS = 100_000
"""New objects until garbage is collected: imports make many, and none of it is garbage (700 would be Python's own)."""


def main() -> None:
    """Run the command line. The version is told without loading it: scripts ask for it first of all."""
    if sys.argv[1:] == ["--version"]:
        from sealpipe import __version__

        sys.stdout.write(f"sealpipe {__version__}\n")
        return
    from sealpipe.cli.context import harden, leave_out

    harden()
    leave_out()
    gc.set_threshold(_OBJECTS)
    from sealpipe.cli import run

    code = run(sys.argv[1:])
    gc.freeze()  # the interpreter's last collection has nothing to look through
    sys.exit(code)


if __name__ == "__main__":
    main()
