"""Kill processes of `sealpipe server run` with SIGKILL at random moments, again and again, while
clients create, open and replay; every tenth kill is one of PostgreSQL with all its processes.

Prints figures; ends with an error where an answered create is lost, one is doubled, or a share of
one view is opened twice.

    python tests/endurance/server_kills.py [--kills 320] [--seed 0] [--store sqlite|postgresql]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.parts import run_postgres
from support.server_kills import kill_while_serving


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=320)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="postgresql")
    options = parser.parse_args()
    began = time.monotonic()
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "service"
        server = None if options.store == "sqlite" else stack.enter_context(run_postgres())
        figures = kill_while_serving(place, server, kills=options.kills, seed=options.seed)
    for name, count in sorted(figures.items()):
        print(f"{name}: {count}")
    print(f"seconds: {time.monotonic() - began:.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
