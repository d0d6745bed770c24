"""What somebody asks for by hand while another process runs the batches of an embedded database.

There, only the holder of the runner's lock works on rows. So a command records its wish in the
database, the holder carries it out before anything else, and the command waits for the outcome. A
wish is an effect of its batch: sealed, and taken by compare-and-set. So it is carried out once,
whoever is killed. It names its command, which gives signs of life as long as it waits: what nobody
waits for any more is forgotten.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from sealpipe.batch.database.records import (
    SECOND,
    Batch,
    ConflictError,
    Effect,
    Row,
    make_batch_row,
)
from sealpipe.batch.database.store import BatchStore
from sealpipe.batch.engine.outcome import Outcome, Verb
from sealpipe.batch.steps.content import describe_error
from sealpipe.errors import SealpipeError

PATIENCE: Final = 60.0
"""Seconds after which a wish that nobody takes is withdrawn, for the holder is of an earlier
sealpipe, or was stopped; and after which a command without a sign of life is gone.
"""
_SIGN_WAIT: Final = 10.0
"""Seconds between two signs of life of a command that waits."""
_ASKING_WAIT: Final = 0.05
"""Seconds between two looks for an outcome."""
_SERVING_WAIT: Final = 0.2
"""Seconds between two looks for wishes."""
_PREFIX: Final = "wish/"
_COMMAND: Final = "asking/"
"""Begins the name of the effect that holds when a command last gave a sign of life."""

CarryOut = Callable[[Verb, str, str], Outcome]
"""What carries out a verb for a row of a batch, by the row's key and id."""


def ask(
    store: BatchStore, batch: Batch, verb: Verb, rows: Mapping[str, str], carry_out: CarryOut
) -> Iterator[Outcome]:
    """Yield the outcome for each of these rows, ids by key.

    The holder of the runner's lock carries it out; this process by `carry_out`, if the lock becomes
    free. What nobody has begun is withdrawn if the caller stops.
    """
    owner, command = make_batch_row(batch), _Command(store, batch)
    wishes = {
        key: store.effects.intend(
            owner,
            f"{_PREFIX}{os.urandom(8).hex()}",
            {"verb": verb, "key": key, "row": row_id, "command": command.sign.name},
        )
        for key, row_id in rows.items()
    }
    try:
        for key in rows:
            yield _await(store, batch, command, wishes[key], carry_out)
            del wishes[key]
    finally:
        for effect in (*wishes.values(), command.sign):
            with suppress(SealpipeError):
                store.effects.remove(effect)  # as it was recorded: it stays if somebody has it


class _Command:
    """A command that waits, and gives signs of life."""

    def __init__(self, store: BatchStore, batch: Batch) -> None:
        self._store = store
        self.sign = store.effects.record(
            make_batch_row(batch), f"{_COMMAND}{os.urandom(8).hex()}", {"at": store.now()}
        )
        self._next_at = time.monotonic() + _SIGN_WAIT

    def live(self) -> None:
        """Give a sign of life, if it is time."""
        if time.monotonic() >= self._next_at:
            self._next_at = time.monotonic() + _SIGN_WAIT
            with suppress(ConflictError):  # it stood still, and counts as gone
                self.sign = self._store.effects.amend(self.sign, {"at": self._store.now()})


def _await(
    store: BatchStore, batch: Batch, command: _Command, wish: Effect, carry_out: CarryOut
) -> Outcome:
    verb, key, row_id = (wish.content[name] for name in ("verb", "key", "row"))
    look_at, seen = time.monotonic() + PATIENCE / 2, dict[str, str]()
    while True:
        command.live()
        outcome = _take_outcome(store, batch, wish)
        if outcome is not None:
            return outcome
        with store.join_runner() as is_free:
            if is_free:  # the holder has ended since
                outcome = _take_outcome(store, batch, wish)
                if outcome is not None:
                    return outcome
                if store.effects.remove(wish):
                    return carry_out(verb, key, row_id)
                return _make_cut_outcome(batch, key)
        if time.monotonic() > look_at:
            # Between two others it may have none at this moment, but then they have changed.
            before, seen = seen, _read_states(store)
            is_idle = seen == before and "sending" not in seen.values()
            look_at = time.monotonic() + PATIENCE / 2
            if is_idle and store.effects.remove(wish):
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
        return Outcome(
            wish.content["key"],
            (),
            "this command stood still, or the batch was purged: nothing was done",
            "run the command again",
        )
    if found.state != "done":
        return None
    store.effects.remove(found)
    return Outcome.load(found.content["outcome"])


def _finish(store: BatchStore, wish: Effect, outcome: Outcome) -> None:
    store.effects.finish(wish, "done", {**wish.content, "outcome": outcome.to_members()})


def _make_cut_outcome(batch: Batch, key: str) -> Outcome:
    return Outcome(
        key,
        (),
        "the process that ran the batch ended in the middle of it",
        f"`sealpipe batch status {batch.name}` shows the row; run the command again",
    )


def _read_states(store: BatchStore) -> dict[str, str]:
    """Return the state of each wish of any batch."""
    return {
        effect.id: effect.state
        for batch in store.list_batches()
        for effect in store.effects.list(make_batch_row(batch))
        if effect.name.startswith(_PREFIX)
    }


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
    is_first = True
    while not stop.is_set():
        with suppress(SealpipeError):  # of the database: whoever runs the batch tells it
            for batch in store.list_batches() if is_first else ():
                _clear(store, batch)
            is_first = False
            found = store.effects.find_intended()
            for batch in store.list_batches() if found else ():
                if batch.id in found:
                    _serve_batch(store, batch, open_batch, stop)
        stop.wait(_SERVING_WAIT)


def _clear(store: BatchStore, batch: Batch) -> None:
    """Forget what nobody waits for any more; tell who waits what a process that ended had begun."""
    owner = make_batch_row(batch)
    for effect in store.effects.list(owner):
        if effect.name.startswith(_COMMAND):
            if not _is_alive(store, effect):
                store.effects.remove(effect)
        elif effect.name.startswith(_PREFIX):
            if not _is_wanted(store, owner, effect):
                store.effects.remove(effect)
            elif effect.state == "sending":
                _finish(store, effect, _make_cut_outcome(batch, effect.content["key"]))


def _is_wanted(store: BatchStore, owner: Row, wish: Effect) -> bool:
    sign = store.effects.find(owner, str(wish.content.get("command")))
    return sign is not None and _is_alive(store, sign)


def _is_alive(store: BatchStore, sign: Effect) -> bool:
    return store.now() - int(sign.content["at"]) < PATIENCE * SECOND


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
        if not _is_wanted(store, owner, wish):
            store.effects.remove(wish)
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
        _finish(store, taken, outcome)
