"""Let a thousand vendors live through thirty days of a batch, and compare how each row ends with a
small model.

Service, channel and sink are in this process, and all clocks move together: on SQLite the database
and the service are told the time; with PostgreSQL, that of this process and of the database is
libfaketime's, and a worker lives beside the runs. Prints figures; ends with 1 where the engine and
the model differ.

    python tests/endurance/batch_simulation.py [--database sqlite|postgresql] [--vendors 1000]
        [--seed 0] [--every 1.0] [--threads 1]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cli.batch.simulation import FakedWorld, draw_runs, draw_vendors, play, predict
from cli.batch.world import BatchWorld
from support.faked_time import faked_time
from support.parts import run_postgres


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--vendors", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=float, default=1.0, help="days between two runs, about")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    vendors, runs = (
        draw_vendors(options.vendors, options.seed),
        draw_runs(options.seed, options.every),
    )
    expected = {vendor.name: predict(vendor, runs) for vendor in vendors}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if options.database == "postgresql":
            stack.enter_context(faked_time())
            world = FakedWorld(folder, stack.enter_context(run_postgres()).address)
        else:
            world = BatchWorld(folder)
        stack.enter_context(closing(world))
        began, busy = time.monotonic(), time.process_time()
        ended = play(world, vendors, runs, threads=options.threads)
        seconds, cpu = time.monotonic() - began, time.process_time() - busy
    wrong = {name: (ended[name], end) for name, end in expected.items() if ended[name] != end}
    print(
        f"{len(vendors)} vendors, {len(runs)} runs in 30 days: {seconds:.0f} s, "
        f"{cpu:.0f} s of CPU; {len(wrong)} ended otherwise than the model says"
    )
    for (state, messages, stored), number in sorted(Counter(ended.values()).items()):
        print(
            f"  {number:6}  {state}, {messages} messages, "
            f"{'stored' if stored else 'nothing stored'}"
        )
    for name, (was, should_be) in sorted(wrong.items())[:20]:
        print(f"{name}: {was}, but the model says {should_be}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
