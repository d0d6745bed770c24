"""Whether the time of an answer tells a stranger what there is not from what is another's.

    python tests/endurance/timing.py [SECONDS]     a table, after so many seconds for each pair

Both requests of a pair are sent in turn, over one connection to a server in this process. The
table has the median of each, their difference, and how often the foreign one took longer (half of
all times where nothing can be told; the interval is of 99 %).
"""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cli.server.pairs import make_pairs
from support.server_thread import serve_in_thread

Times = Sequence[tuple[float, float]]


def measure(client: httpx.Client, pair: tuple[httpx.Request, ...], seconds: float) -> Times:
    """Send both in turn, in either order, and return how long each pair of answers took."""
    taken = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        order = (0, 1) if len(taken) % 2 else (1, 0)
        each = [0.0, 0.0]
        for number in order:
            begun = time.perf_counter()
            client.send(pair[number])
            each[number] = time.perf_counter() - begun
        taken.append((each[0], each[1]))
    return taken


def main(seconds: float = 10.0) -> None:
    """Measure all pairs, and print the table."""
    logging.disable()
    print("| pair | pairs | unknown | foreign | foreign took longer |")
    print("| --- | --- | --- | --- | --- |")
    with (
        serve_in_thread() as server,
        httpx.Client(base_url=f"http://{server.host}", trust_env=False) as client,
    ):
        for name, pair in make_pairs(server, client).items():
            measure(client, pair, seconds / 10)
            taken = measure(client, pair, seconds)
            unknown, foreign = (median(each) * 1e6 for each in zip(*taken, strict=True))
            longer = sum(second > first for first, second in taken) / len(taken)
            around = 2.58 * math.sqrt(0.25 / len(taken))
            told = f"{longer:.1%} ± {around:.1%}"
            print(f"| {name} | {len(taken):,} | {unknown:.0f} µs | {foreign:.0f} µs | {told} |")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
