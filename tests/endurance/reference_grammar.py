"""References are printed and read, and junk is refused, ten times as often as in the tests.

    python tests/endurance/reference_grammar.py [--cases 40000] [--seed 1]

Prints pytest's summary, with the seconds that each property took; ends with the first text that is
read otherwise.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=40_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    words = [
        "-n0",
        "-q",
        "--durations=3",
        f"--hypothesis-seed={options.seed}",
        TESTS / "unit/references/test_properties.py",
    ]
    environ = {**os.environ, "SEALPIPE_TESTS_CASES": str(options.cases)}
    sys.exit(
        subprocess.run(
            [sys.executable, "-m", "pytest", *words], env=environ, check=False
        ).returncode
    )


if __name__ == "__main__":
    main()
