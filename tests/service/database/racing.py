"""A process of its own at a store's file: says that it is ready, waits for a line, does what its
arguments say as often and in as many threads as they say, and prints what came of each as JSON.

    python racing.py FILE WHAT CODE THREADS
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sealpipe_service.database.access import InFlightError
from service.database.stores import World, digest

NOW = 1_800_000_000.0


def opened(world: World, code: str) -> object:
    return world.open(code).reason or "opened"


def guessed(world: World, code: str) -> object:
    return world.open(code, "wrong").reason


def submitted(world: World, code: str) -> object:
    return world.submit(code) is not None


def ended(world: World, code: str) -> object:
    return world.end_request(code)


def deleted(world: World, code: str) -> object:
    return world.delete(code)


def taken(world: World, code: str) -> object:
    return world.store.take(code, 30, NOW) == 0


def created(world: World, name: str) -> object:
    try:
        return world.share(name)
    except InFlightError:
        return "in flight"


def allowed(world: World, _: str) -> object:
    try:
        return bool(world.share(most=10))
    except Exception as error:  # noqa: BLE001
        return type(error).__name__


def held(world: World, name: str) -> object:
    """Claim a key, say so, and never end."""
    with world.store.claim("k" * 16, name, digest("body")):
        print("held", flush=True)
        signal.pause()
    return None


WHAT: dict[str, Callable[[World, str], object]] = {
    each.__name__: each
    for each in (opened, guessed, submitted, ended, deleted, taken, created, allowed, held)
}


def main(file: str, what: str, code: str, threads: str) -> None:
    world = World(Path(file), lambda: NOW)
    if what == "held":
        held(world, code)
    print("ready", flush=True)
    sys.stdin.readline()
    with ThreadPoolExecutor(int(threads)) as pool:
        done = list(pool.map(lambda _: WHAT[what](world, code), range(int(threads))))
    world.store.close()
    print(json.dumps(done))


if __name__ == "__main__":
    main(*sys.argv[1:])
