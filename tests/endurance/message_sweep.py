"""Kill `sealpipe request`, and a share that sends its messages, at every system call that changes
something.

After each kill `sealpipe resume` finishes it: one request with one link, its receipt and its seed;
one share whose link and passcode went out once each, or a second time only for `--resend`. Prints a
line for each of the four sweeps; ends with 1 where a promise broke. Wants strace.

    python tests/endurance/message_sweep.py [--at-once 4]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cli.kills.delivering import Delivering
from cli.kills.requesting import KEYS, Asking
from sealpipe_rehearsal.server import start


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--at-once", type=int, default=4)
    options = parser.parse_args()
    broken = 0
    with start() as service:
        sweeps = {
            **{
                f"a request sealed to {name}": Asking(service, words)
                for name, words in KEYS.items()
            },
            "a link to a receiver, its passcode to a file": Delivering(service, to_file=False),
            "a link to a file, its passcode to a receiver": Delivering(service, to_file=True),
        }
        for name, sweep in sweeps.items():
            broken += swept(name, sweep, options.at_once)
    return int(broken > 0)


def swept(name: str, sweep: Asking | Delivering, at_once: int) -> int:
    """How many kills of one sweep broke the promise."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(at_once) as pool:
        place = Path(folder)
        chosen = sweep.points(place / "traced")
        found = list(
            pool.map(lambda pair: sweep.kill_at(pair[1], place / str(pair[0])), enumerate(chosen))
        )
    wrong = {f"{each.point} {each.point.text[:60]}": each.wrong() for each in found if each.wrong()}
    ends = Counter(each.code for each in found)
    seconds = time.monotonic() - began
    told = ", ".join(f"{number} ended with {code}" for code, number in sorted(ends.items()))
    print(
        f"{name}: {len(found)} kills ({told}) in {seconds:.0f} s, {len(wrong)} broken", flush=True
    )
    for where, why in wrong.items():
        print(f"  {where}: {why}", flush=True)
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main())
