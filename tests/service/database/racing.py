"""Processes at a store, forked from one that has imported all they need: once all are ready, each
does what the arguments say in as many threads as they say, each with the next of the codes; what
came of all is printed as JSON.

    python racing.py ADDRESS WHAT "CODE ..." THREADS PROCESSES
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import secrets
import signal
import socket
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


def race(address: str, what: str, code: str, threads: int, line: socket.socket) -> None:
    """Say that this process is ready, wait, race, and tell what came of it."""
    world = World(address)
    line.sendall(b"r")
    line.recv(1)
    with ThreadPoolExecutor(threads) as pool:
        codes = itertools.islice(itertools.cycle(code.split()), threads)
        done = list(pool.map(lambda each: WHAT[what](world, each), codes))
    world.store.close()
    line.sendall(json.dumps(done).encode())


def main(address: str, what: str, code: str, threads: str, processes: str) -> None:
    if what == "held":
        held(World(address), code)
    if address.startswith("postgresql:"):
        importlib.import_module("sealpipe_service.database.postgresql")  # once, for all of them
    lines: list[socket.socket] = []
    for _ in range(int(processes)):
        ours, theirs = socket.socketpair()
        if not os.fork():
            race(address, what, code, int(threads), theirs)
            return
        theirs.close()
        lines.append(ours)
    for each in lines:
        assert each.recv(1) == b"r"
    for each in lines:
        each.sendall(b"g")
    done = [result for each in lines for result in json.loads(each.makefile().read())]
    assert not any(os.wait()[1] for _ in lines)
    print(json.dumps(done))


if __name__ == "__main__":
    main(*sys.argv[1:])
