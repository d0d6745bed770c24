"""Let a thousand vendors live through thirty days of a batch, and compare how each row ends with a
small model.

Service, database, channel and sink are in this process, and all clocks move together. Prints
figures; ends with 1 where the engine and the model differ.

    python tests/endurance/batch_simulation.py [--vendors 1000] [--seed 0] [--every 1.0]
        [--threads 1]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cli.batch.simulation import draw_runs, draw_vendors, play, predict


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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
    began, busy = time.monotonic(), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        ended = play(Path(folder), vendors, runs, threads=options.threads)
    wrong = {name: (ended[name], end) for name, end in expected.items() if ended[name] != end}
    print(
        f"{len(vendors)} vendors, {len(runs)} runs in 30 days: {time.monotonic() - began:.0f} s, "
        f"{time.process_time() - busy:.0f} s of CPU; {len(wrong)} ended otherwise than the "
        "model says"
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
