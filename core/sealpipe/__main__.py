"""The way in: `sealpipe` and `python -m sealpipe`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line. The version is told without loading it: scripts ask for it first of all."""
    if sys.argv[1:] == ["--version"]:
        from sealpipe._version import __version__

        sys.stdout.write(f"sealpipe {__version__}\n")
        return
    # httpcore imports trio wherever it is installed: 0.1 s and a run of ldconfig, for an event loop no command has.
    sys.modules.setdefault("trio", None)  # type: ignore[arg-type]
    from sealpipe.cli.main import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
