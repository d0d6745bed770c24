"""What somebody asks for by hand while another process runs the batches of an embedded database.

There, only the holder of the runner's lock works on rows. So a command records its wish in the
database, the holder carries it out before anything else, and the command waits for the outcome. A
wish is an effect of its batch: sealed, and taken by compare-and-set. So it is carried out once,
whoever is killed.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from sealpipe.batch.database.records import Batch, Effect, make_batch_row
from sealpipe.batch.database.store import BatchStore
from sealpipe.batch.engine.outcome import Outcome, Verb
from sealpipe.batch.steps.content import describe_error
from sealpipe.errors import SealpipeError

PATIENCE: Final = 60.0
"""Seconds after which a wish that nobody takes is withdrawn: the holder is of an earlier sealpipe,
or was stopped.
"""
_ASKING_WAIT: Final = 0.05
"""Seconds between two looks for an outcome."""
_SERVING_WAIT: Final = 0.2
"""Seconds between two looks for wishes."""
_PREFIX: Final = "wish/"

CarryOut = Callable[[Verb, str, str], Outcome]
"""What carries out a verb for a row of a batch, by the row's key and id."""


def ask(
    store: BatchStore, batch: Batch, verb: Verb, rows: Mapping[str, str], carry_out: CarryOut
) -> Iterator[Outcome]:
    """Yield the outcome for each of these rows, ids by key.

    The holder of the runner's lock carries it out; this process by `carry_out`, if the lock becomes
    free. What nobody has begun is withdrawn if the caller stops.
    """
    owner = make_batch_row(batch)
    wishes = {
        key: store.effects.intend(
            owner,
            f"{_PREFIX}{os.urandom(8).hex()}",
            {"verb": verb, "key": key, "row": row_id},
        )
        for key, row_id in rows.items()
    }
    try:
        for key, row_id in rows.items():
            yield _await(store, batch, verb, (key, row_id), wishes[key], carry_out)
            del wishes[key]
    finally:
        for wish in wishes.values():
            with suppress(SealpipeError):
                store.effects.remove(wish)  # as it was recorded: it stays if somebody has it


def _await(
    store: BatchStore,
    batch: Batch,
    verb: Verb,
    row: tuple[str, str],
    wish: Effect,
    carry_out: CarryOut,
) -> Outcome:
    key, gives_up_at = row[0], time.monotonic() + PATIENCE
    while True:
        outcome = _take_outcome(store, batch, wish)
        if outcome is not None:
            return outcome
        with store.join_runner() as is_free:
            if is_free:  # the holder has ended since
                outcome = _take_outcome(store, batch, wish)
                if outcome is not None:
                    return outcome
                if store.effects.remove(wish):
                    return carry_out(verb, *row)
                return Outcome(
                    key,
                    (),
                    "the process that ran the batch ended in the middle of it",
                    f"`sealpipe batch status {batch.name}` shows the row; run the command again",
                )
        if time.monotonic() > gives_up_at and store.effects.remove(wish):
            return Outcome(
                key,
                (),
                "the process that runs the batch did not take it up: nothing was done",
                "end that process, or wait for it, and run the command again",
            )
        time.sleep(_ASKING_WAIT)


def _take_outcome(store: BatchStore, batch: Batch, wish: Effect) -> Outcome | None:
    """Return the outcome of a wish, once it has one, and forget the wish."""
    found = store.effects.find(make_batch_row(batch), wish.name)
    if found is None:
        return Outcome(wish.content["key"], (), "it was purged meanwhile")
    if found.state != "done":
        return None
    store.effects.remove(found)
    return Outcome.load(found.content)


@contextmanager
def serving_wishes(store: BatchStore, open_batch: Callable[[Batch], CarryOut]) -> Iterator[None]:
    """Carry out in a thread, during the block, what others ask for by hand.

    `open_batch` is called once for all that is asked for together: where the service does not
    answer, not every row is tried. The caller holds the runner's lock of an embedded database.
    Where any process works on rows, nobody has wishes.
    """
    if not store.has_one_runner:
        yield
        return
    stop = threading.Event()
    thread = threading.Thread(target=_serve, args=(store, open_batch, stop), daemon=True)
    thread.start()
    try:
        yield
    except BaseException:
        stop.set()  # the process ends: what has begun can be killed as well
        raise
    stop.set()
    thread.join()


def _serve(
    store: BatchStore, open_batch: Callable[[Batch], CarryOut], stop: threading.Event
) -> None:
    while not stop.is_set():
        with suppress(SealpipeError):  # of the database: whoever runs the batch tells it
            found = store.effects.find_intended()
            for batch in store.list_batches() if found else ():
                if batch.id in found:
                    _serve_batch(store, batch, open_batch, stop)
        stop.wait(_SERVING_WAIT)


def _serve_batch(
    store: BatchStore,
    batch: Batch,
    open_batch: Callable[[Batch], CarryOut],
    stop: threading.Event,
) -> None:
    owner = make_batch_row(batch)
    carry_out: CarryOut | None = None
    for wish in store.effects.list(owner):
        if stop.is_set():
            return
        if wish.state != "intent" or not wish.name.startswith(_PREFIX):
            continue
        taken = store.effects.begin(owner, wish.name, wish.content)
        if taken is None:
            continue
        verb, key, row_id = (wish.content[name] for name in ("verb", "key", "row"))
        try:
            carry_out = carry_out or open_batch(batch)
            outcome = carry_out(verb, key, row_id)
        except Exception as error:  # noqa: BLE001 - it is told by the command that waits
            problem, remedy, _ = describe_error(error)
            outcome = Outcome(key, (), problem, remedy)
        store.effects.finish(taken, "done", outcome.to_members())
