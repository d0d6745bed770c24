"""Kill `sealpipe share` with SIGKILL at every system call after it first touches its state folder.

After each kill: `sealpipe resume`, and then there is exactly one share with one link that its
recipient can open, or nothing at all, at the service and on disk. Prints a table of figures; ends
with 1 where the promise broke.

    python tests/endurance/kill_sweep.py [--every-call] [--resuming] [--signal SIGTERM]
        [--words '--link-file link.txt'] [--storing]

Without --every-call only the calls that change something (see cli/sweep.py). With --resuming the
share is killed after its commit, and the sweep is over the `resume` that follows. With --storing
the share is of a new password that is stored in a dotenv file, too (--also-to), and what the
recipient sees must be what is stored. Wants strace.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cli.rotating import Rotating
from cli.sweep import MATTER, Killed, Sweep
from sealpipe_rehearsal.server import start
from support.job import Job
from support.strace import Point, only


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--every-call", action="store_true", help="not only those that change something"
    )
    parser.add_argument(
        "--resuming", action="store_true", help="kill `sealpipe resume` in place of the share"
    )
    parser.add_argument("--signal", default="SIGKILL", help="another one, such as SIGTERM")
    parser.add_argument("--words", default="", help="more options for `sealpipe share`")
    parser.add_argument(
        "--storing", action="store_true", help="share a new password that is stored, too"
    )
    parser.add_argument("--at-once", type=int, default=4)
    options = parser.parse_args()
    words = tuple(shlex.split(options.words))
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        start() as service,
        ThreadPoolExecutor(options.at_once) as pool,
    ):
        place = Path(folder)
        job = Rotating if options.storing else Job
        sweep = Sweep(service, words, options.resuming, options.signal, job)
        calls = sweep.points(place / "traced")
        chosen = calls if options.every_call else only(calls, MATTER)
        results = list(
            pool.map(lambda pair: sweep.kill_at(pair[1], place / str(pair[0])), enumerate(chosen))
        )
    for result in results:
        show(result)
    summarise(results, time.monotonic() - began)
    return int(any(result.wrong() for result in results))


def show(result: Killed) -> None:
    point: Point = result.point
    verdict = f"WRONG: {wrong}" if (wrong := result.wrong()) else "ok"
    print(
        f"{point!s:16} exit {result.code:4}  shares {result.shares}  kept {result.entries}  "
        f"printed {int(bool(result.printed))}  -> resume {result.resume_code}  shares "
        f"{result.shares_then}  "
        f"links {len(result.links)}  litter {result.litter}  {verdict}  {point.text[:60]}"
    )


def summarise(results: list[Killed], seconds: float) -> None:
    kinds = Counter(
        "survived"
        if result.code == 0
        else "nothing happened"
        if not result.shares_then
        else "link was out already"
        if result.printed and not result.resumed
        else "resume told the link again"
        if result.printed
        else "resume replayed the create"
        if result.shares
        else "resume made the share"
        for result in results
    )
    wrong = sum(result.wrong() is not None for result in results)
    print(f"\n{len(results)} kills in {seconds:.0f} s: {wrong} broke the promise")
    for kind, number in kinds.most_common():
        print(f"  {number:4}  {kind}")
    print(
        f"  {sum(bool(result.litter) for result in results):4}  left a file behind that "
        "resume does not clear away"
    )


if __name__ == "__main__":
    sys.exit(main())
