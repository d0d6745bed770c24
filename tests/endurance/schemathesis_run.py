"""schemathesis against the rehearsal service on a real socket: no 500, and no answer that its
document does not have.

    python tests/endurance/schemathesis_run.py [--cases 1000] [--seed 1]

Prints how often each operation answered with each status; ends with the first answer that is out of
shape.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sealpipe_rehearsal.server import start
from service.schemathesis_cases import Run


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.monotonic()
    with start() as service:
        counts = Run(service, options.seed).all(options.cases)
    for (label, mode, status), number in sorted(counts.items(), key=str):
        print(f"{label:40} {mode.value:9} {status} {number:6,}")
    print(f"{counts.total():,} cases, every answer in shape, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
