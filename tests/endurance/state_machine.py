"""The rehearsal service against a model of the specification's states: thousands of runs of random
steps.

Every step is a call (or time passing, a plan changing, a restart), and every answer must be the
model's: status, error_code and body. Prints how often each answer was seen; ends with the shortest
run that disagrees, if one does.

    python tests/endurance/state_machine.py [--runs 2000] [--steps 50] [--seed 1] [--socket]
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from hypothesis import seed, settings
from hypothesis.stateful import run_state_machine_as_test

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from service.doors import InProcess, OverASocket
from service.machine import Machine
from service.side_by_side import Base
from support.hostile import SHRUNK


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--socket", action="store_true", help="over a real socket, in place of in process"
    )
    options = parser.parse_args()
    counts = {"runs": 0}

    @seed(options.seed)
    class Counted(Machine):
        """Counts the runs."""

        door_class = OverASocket if options.socket else InProcess

        def __init__(self) -> None:
            counts["runs"] += 1
            super().__init__()

    began = time.monotonic()
    chosen = settings(SHRUNK, max_examples=options.runs, stateful_step_count=options.steps)
    run_state_machine_as_test(Counted, settings=chosen)
    for (step, status, what), number in sorted(Base.answers.items(), key=str):
        print(f"{step:20} {status} {'' if what is None else what:30} {number:8,}")
    print(
        f"{counts['runs']:,} runs, {Base.steps:,} steps, {Base.compared:,} answers "
        "compared, none differs;"
    )
    print(f"{len(Base.answers)} different answers, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
