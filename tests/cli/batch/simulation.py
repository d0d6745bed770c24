"""Vendors over thirty days, with runs as a scheduler makes them, and what becomes of them as a
small model says.

The model knows nothing of the engine: from what each vendor does and when runs come it computes how
the row ends, how many messages the vendor got, and what is stored.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cli.batch.world import DAY, BatchWorld

FILE = """
name = "simulated"
kind = "request"
rows = "rows.csv"
key = "name"

[request]
ask = ["Password"]
title = "Access"
expires-in = "30d"
max-submissions = 1
send = ["pigeon:{to}"]

[remind]
after = ["3d", "7d"]
before-expiry = "1d"

[collect]
to = ["nest:{name}#password=Password"]
after = "expire"
"""
REMINDERS = (3.0, 7.0, 29.0)
EXPIRY = 30.0


@dataclass(frozen=True)
class Vendor:
    """What a vendor does: submits on a day, or never; `junk` cannot be opened."""

    name: str
    day: float | None
    junk: bool = False


class End(NamedTuple):
    """How a row ends: its state, the messages that its vendor got, and whether something is
    stored.
    """

    state: str
    messages: int
    stored: bool


def draw_vendors(number: int, seed: int) -> list[Vendor]:
    """Half of them submit early, some late, some never, and a few send junk."""
    chance = random.Random(seed)  # noqa: S311 - a simulation
    return [
        Vendor(f"v{each:04}", _draw_day(chance), chance.random() < 0.03) for each in range(number)
    ]


def _draw_day(chance: random.Random) -> float | None:
    kind = chance.random()
    if kind < 0.15:
        return None
    return min(29.9, chance.expovariate(1 / 4)) if kind < 0.8 else chance.uniform(0.01, 29.9)


def draw_runs(seed: int, each: float = 1.0) -> list[float]:
    """The days on which the scheduler runs: about one each day, none for a week, until after the
    expiry.
    """
    chance = random.Random(seed + 1)  # noqa: S311 - a simulation
    runs, day = [], 0.0
    while day < EXPIRY + 3:
        runs.append(day)
        day += each * chance.uniform(0.5, 1.5)
    return [day for day in runs if not 12 < day < 18]


def predict(vendor: Vendor, runs: Sequence[float]) -> End:
    """What the model says."""
    first = runs[0]
    messages, reminded_until = 1, first
    for now in runs[1:]:
        if vendor.day is not None and first + vendor.day <= now:
            return End("failed" if vendor.junk else "done", messages, not vendor.junk)
        if now >= first + EXPIRY:
            return End("expired", messages, stored=False)
        if any(reminded_until < first + moment <= now for moment in REMINDERS):
            messages, reminded_until = messages + 1, now
    raise AssertionError("the runs end before the request does")


def play(
    folder: Path, vendors: Sequence[Vendor], runs: Sequence[float], *, threads: int = 1
) -> dict[str, End]:
    """Let the engine do it: how each row ended."""
    world = BatchWorld(folder)
    try:
        path = world.write(
            FILE, [{"name": each.name, "to": f"{each.name}.example"} for each in vendors]
        )
        waiting = sorted(
            (each for each in vendors if each.day is not None), key=lambda each: each.day or 0.0
        )
        for day in runs:
            while waiting and (waiting[0].day or 0.0) <= day - runs[0]:
                vendor = waiting.pop(0)
                code = world.code_of(f"{vendor.name}.example")
                world.submit(code, data="AA==" if vendor.junk else None)
            world.wait(day * DAY - world.elapsed)
            world.run(path, threads=threads)
        states = world.states(path)
        return {
            each.name: End(
                states[each.name],
                len(world.messages(f"{each.name}.example")),
                each.name in world.loft.values,
            )
            for each in vendors
        }
    finally:
        world.close()
