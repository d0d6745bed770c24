"""`collect_each` in random worlds against a model: lists that come, go, repeat and lie, faults,
keys that change.

Hypothesis draws services that answer what they like, when they like; each run must end as a model
says that reads the same answers (cli/collect/model.py): status, exit code, what is stored, how much
could not be used. Then it is run again: nothing is stored twice.

    python tests/endurance/collect_model.py [--worlds 20000] [--seed 1]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from hypothesis import given, seed, settings

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cli.collect.playing import played
from cli.collect.world import WORLDS, World
from support.hostile import SHRUNK


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    figures: Counter[str] = Counter()

    @seed(options.seed)
    @settings(SHRUNK, max_examples=options.worlds)
    @given(WORLDS)
    def run(world: World) -> None:
        figures.update(played(world))

    began = time.monotonic()
    run()
    for what, number in sorted(figures.items()):
        print(f"{number:9,}  {what}")
    print(f"none differs from the model; {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
