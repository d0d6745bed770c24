"""A process of its own at a store: says that it is ready, waits for a line, does what its
arguments say in as many threads as they say, each with the next of the codes, and prints what came
of each as JSON.

    python racing.py ADDRESS WHAT "CODE ..." THREADS
"""

from __future__ import annotations

import itertools
import json
import secrets
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from sealpipe_service.database.access import InFlightError
from sealpipe_service.database.decisions import QuotaError
from service.database.stores import NOON, PLAN, World, digest


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
    return world.store.take(code, 30, NOON) == 0


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


def keyed(world: World, _: str) -> object:
    try:
        return world.key(secrets.token_hex())
    except QuotaError:
        return "QuotaError"


def planned(world: World, _: str) -> object:
    """Write one more in an account's plan than there was."""
    world.store.change_account(
        "acme", PLAN, lambda row: {**row, "plan": f"{row['plan']}+"}, at_once=True
    )
    return None


def swept(world: World, _: str) -> object:
    return len(world.store.sweep())


def held(world: World, name: str) -> object:
    """Claim a key, say so, and never end."""
    with world.store.claim("k" * 16, name, digest("body")):
        print("held", flush=True)
        signal.pause()
    return None


WHAT: dict[str, Callable[[World, str], object]] = {
    each.__name__: each
    for each in (
        opened,
        guessed,
        submitted,
        ended,
        deleted,
        taken,
        created,
        allowed,
        keyed,
        planned,
        swept,
        held,
    )
}


def main(address: str, what: str, code: str, threads: str) -> None:
    world = World(address)
    if what == "held":
        held(world, code)
    print("ready", flush=True)
    sys.stdin.readline()
    with ThreadPoolExecutor(int(threads)) as pool:
        codes = itertools.islice(itertools.cycle(code.split()), int(threads))
        done = list(pool.map(lambda each: WHAT[what](world, each), codes))
    world.store.close()
    print(json.dumps(done))


if __name__ == "__main__":
    main(*sys.argv[1:])
