"""Play random schedules of faults, kills, repeats and concurrent commands against rule D.

After each: no submission was destroyed but by `purge --confirm`, no `expire` sent more than one
DELETE, everything that was submitted, late or not, is kept on disk, and a user who runs it again
comes to an end. Prints figures; ends with 1 where a promise broke.

    python tests/endurance/rule_d.py [--schedules 10000] [--first 0] [--show]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cli.expire_request.rule_d import Schedule, played


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--schedules", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument(
        "--show", action="store_true", help="tell how every command of every schedule ended"
    )
    options = parser.parse_args()
    began = time.monotonic()
    figures: Counter[str] = Counter()
    broken = 0
    for seed in range(options.first, options.first + options.schedules):
        with tempfile.TemporaryDirectory() as folder:
            schedule = played(seed, Path(folder) / "requests")
        count(schedule, figures)
        broken += bool(schedule.wrong)
        if schedule.wrong or options.show:
            show(schedule)
    print(
        f"{options.schedules} schedules in {time.monotonic() - began:.0f} s: {broken} "
        "broke a promise"
    )
    for what, number in sorted(
        figures.items(), key=lambda pair: (pair[0].partition(" ")[0], -pair[1])
    ):
        print(f"  {number:7}  {what}")
    return int(broken > 0)


def count(schedule: Schedule, figures: Counter[str]) -> None:
    for command in schedule.commands:
        ended = command.ended
        how = "killed" if ended is None else getattr(ended, "outcome", type(ended).__name__)
        figures[f"{command.kind}: {how}"] += 1
        figures["DELETEs sent"] += command.deletes
        figures["late submissions kept"] += getattr(ended, "late", 0)
    service = schedule.service
    figures["submissions"] += len(service.submissions) + len(service.destroyed)
    figures["requests purged"] += service.destroyed_by == "purge"


def show(schedule: Schedule) -> None:
    for command in schedule.commands:
        print(
            f"seed {schedule.seed}: {command.kind} {command.deletes} DELETE(s): {command.ended!r}"[
                :300
            ]
        )
    for wrong in schedule.wrong:
        print(f"seed {schedule.seed}: WRONG: {wrong}")


if __name__ == "__main__":
    sys.exit(main())
