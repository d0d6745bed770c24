"""Kill runs and workers of a batch with SIGKILL at random moments, on SQLite and PostgreSQL, again
and again.

Each machine is a process of its own, forked from this one, with the real client, over HTTP, against
a rehearsal service in another process. A scenario is killed while it creates and delivers, and
again while it collects and reminds; then one run is left to end. After it each row has one live
request or its submission, stored once; each message was sent once, or its row says that it is
unclear. Prints figures; ends with 1 where the promise broke.

    python tests/endurance/batch_kills.py [--kills 500] [--seed 0] [--rows 6]
        [--machines sqlite-run|postgres-run|postgres-worker] [--kill-postgres]

With --kill-postgres every tenth kill is one of PostgreSQL with all its processes, which is then
started again.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cli.batch.machines import Machines, Scenario
from support.parts import Postgres, run_postgres


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, default=6)
    parser.add_argument(
        "--machines",
        choices=("sqlite-run", "postgres-run", "postgres-worker"),
        default="sqlite-run",
    )
    parser.add_argument("--kill-postgres", action="store_true")
    options = parser.parse_args()
    began = time.monotonic()
    figures: Counter[str] = Counter()
    chance = random.Random(options.seed)  # noqa: S311 - the moments of kills
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server: Postgres | None = None
        if options.machines != "sqlite-run":
            server = stack.enter_context(run_postgres())
        machines = stack.enter_context(
            Machines(
                folder,
                server,
                is_worker=options.machines == "postgres-worker",
                kills_server=options.kill_postgres,
            )
        )
        number = 0
        while figures["kills"] < options.kills:
            number += 1
            scenario = Scenario(machines, number, options.rows, chance)
            for wrong in scenario.play(figures):
                print(f"scenario {number}: {wrong}")
                figures["WRONG"] += 1
    for name, count in sorted(figures.items()):
        print(f"  {count:7}  {name}")
    print(f"{number} scenarios in {time.monotonic() - began:.0f} s")
    return int(figures["WRONG"] > 0)


if __name__ == "__main__":
    sys.exit(main())
