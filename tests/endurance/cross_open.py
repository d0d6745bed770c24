"""Envelopes and sealed boxes, half of them sealed by sealpipe and half by WebCrypto, each opened by
both.

Field arrays, payloads, passcodes and tags are random. One in four is broken on its way (a byte of
it, a character of its base64 text) or opened with what is not quite right (passcode, content key,
seed, tag): both must refuse it, and for the same reason. Tokens, verifiers, fragments and public
keys must be the same too. Prints the figures; ends with 1 where the two disagree or something
broken is opened.

    python tests/endurance/cross_open.py [--count 100000] [--seed N]

Wants node 20.
"""

from __future__ import annotations

import argparse
import secrets
import shutil
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from unit.wire.crossing import run, show


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument(
        "--seed", type=int, default=secrets.randbits(32), help="of the run to be repeated"
    )
    options = parser.parse_args()
    program = shutil.which("node")
    if not program:
        parser.error("node is not installed")
    print(f"seed {options.seed}", flush=True)
    began = time.monotonic()
    figures = run(program, options.count, options.seed)
    show(figures, time.monotonic() - began)
    return int(bool(figures.wrong))


if __name__ == "__main__":
    sys.exit(main())
