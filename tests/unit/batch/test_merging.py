"""Writes of a row that wait for its next one: fewer commits, and nothing begins before it is on
disk.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from sealpipe.batch.database.records import ConflictError, Effect, Row
from sealpipe.batch.database.store import BatchStore
from unit.batch.stores import Place, add_rows, be_thought_dead, take


def begin_create(store: BatchStore) -> tuple[Row, Effect]:
    row = take(store, add_rows(store, 1))
    effect = store.effects.begin(row, "1/create", {})
    assert effect is not None
    return row, effect


def states(store: BatchStore, row: Row) -> dict[str, str]:
    return {effect.name: effect.state for effect in store.effects.list(row)}


def test_what_may_wait_is_written_with_what_is_begun_next(place: Place) -> None:
    store, other = place.store(), place.store()
    row, create = begin_create(store)
    other.find_batch("vendors")
    with store.merge_writes(row):
        create = store.effects.finish(create, "done", {"n": 1}, may_wait=True)
        row = store.save(
            row, state="sent", due_at=None, content={"n": 1}, events=[{"what": "sent"}], keep=True
        )
        assert states(other, row) == {"1/create": "sending"}
        assert store.effects.begin(row, "1/message/0", {}) is not None
        assert states(other, row) == {"1/create": "done", "1/message/0": "sending"}
        assert (row.version, [event.content["what"] for event in other.read_history(row)]) == (
            2,
            ["sent"],
        )
        store.effects.amend(create, {"n": 2}, may_wait=True)
    found = other.effects.find(row, "1/create")
    assert found is not None
    assert (found.content, found.version) == ({"n": 2}, 3)


def test_whoever_reads_what_waits_finds_it_written(place: Place) -> None:
    store = place.store()
    row, create = begin_create(store)
    with store.merge_writes(row):
        store.effects.finish(create, "done", {}, may_wait=True)
        assert states(store, row) == {"1/create": "done"}
        row = store.save(row, state="sent", due_at=None, content={}, keep=True)
        found = store.find_row(store.add_batch("vendors", {}), "row 0")
        assert found is not None
        assert (found.state, found.version) == ("sent", row.version)


def save_and_end(store: BatchStore, row: Row, state: str, end: Callable[[Row], object]) -> None:
    """Save a row that is kept, in a block that then ends with an error."""
    with store.merge_writes(row):
        end(store.save(row, state=state, due_at=0, content={}, keep=True))


def test_an_interrupted_block_writes_what_waits(place: Place) -> None:
    store, other = place.store(), place.store()
    row, _ = begin_create(store)

    def interrupt(_: Row) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        save_and_end(store, row, "sent", interrupt)
    assert other.count_states(other.add_batch("vendors", {})) == {"sent": 1}


def test_of_a_row_that_was_lost_nothing_is_written(in_postgres: Place) -> None:
    store, other = in_postgres.store(), in_postgres.store()
    row, create = begin_create(store)
    batch = other.add_batch("vendors", {})

    def lose(saved: Row) -> None:
        be_thought_dead(in_postgres, other, batch)
        take(other, batch)
        store.effects.begin(saved, "1/message/0", {})

    with pytest.raises(ConflictError):
        save_and_end(store, row, "done", lose)
    assert other.count_states(batch) == {"new": 1}
    assert states(other, row) == {"1/create": "sending"}
    store.effects.finish(create, "done", {}, may_wait=True)
    assert states(other, row) == {"1/create": "done"}, "without a block, nothing waits"


def test_what_waits_in_a_thread_that_lost_its_row_is_not_written_by_the_one_that_has_it(
    in_postgres: Place,
) -> None:
    """A worker stood still, and another took its row; then the same process takes it again."""
    store, other = in_postgres.store(), in_postgres.store()
    row, _ = begin_create(store)
    batch = other.add_batch("vendors", {})

    def take_again() -> None:
        again = take(store, store.add_batch("vendors", {}))
        with store.merge_writes(again):
            again = store.save(again, state="mine", due_at=None, content={}, keep=True)
            assert store.effects.begin(again, "1/message/0", {}) is not None
        told.append(again.state)

    told: list[str] = []

    def lose(_: Row) -> None:
        be_thought_dead(in_postgres, other, batch)
        thread = threading.Thread(target=take_again)
        thread.start()
        thread.join()

    with pytest.raises(ConflictError):
        save_and_end(store, row, "lost", lose)
    assert told == ["mine"]
    assert states(store, row) == {"1/create": "sending", "1/message/0": "sending"}
