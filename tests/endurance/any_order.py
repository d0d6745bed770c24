"""All tests in a random order on a busy machine: what depends on the order of tests, or on how soon
a process gets a core, shows.

    python tests/endurance/any_order.py [--seed N] [--busy N] [ARGUMENT ...]

ARGUMENTs are pytest's; without any, `--all`. The same seed gives the same order of the same tests.
A file stays together, since its services start once; the order of files is random, and that of
tests within a file. `--busy` is how many processes count for nothing meanwhile, three for each core
if it is not given. The exit code is pytest's. This file is the plugin, too.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SEED = "PYTEST_ORDER_SEED"
"""The variable by which workers know the seed."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Shuffle what tests/conftest.py has put into one order for all workers."""
    random.Random(os.environ[SEED]).shuffle(items)  # noqa: S311 - an order, and no secret


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--busy", type=int, default=3 * (os.cpu_count() or 1))
    options, words = parser.parse_known_args()
    path = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
    environ = {**os.environ, "PYTHONPATH": path, SEED: str(options.seed)}
    began = time.monotonic()
    with ExitStack() as stack:
        for _ in range(options.busy):
            counting = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(counting.kill)
        command = [sys.executable, "-m", "pytest", "-p", "any_order", *(words or ["--all"])]
        status = subprocess.call(command, cwd=ROOT, env=environ)
        load = os.getloadavg()[0]
    seconds = time.monotonic() - began
    print(f"seed {options.seed}, load {load:.0f}: exit code {status} after {seconds:.0f} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
