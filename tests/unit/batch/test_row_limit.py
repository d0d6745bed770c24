"""The limit of rows an hour on both databases: what is there counts, whoever made it, by the
database's clock.
"""

from __future__ import annotations

from sealpipe.batch.database.records import Batch
from sealpipe.batch.database.store import BatchStore
from sealpipe.batch.engine.row_limit import RowLimit
from sealpipe.batch.steps.states import HOUR
from unit.batch.stores import MINUTE, Place, add_rows, take


def create(store: BatchStore, batch: Batch, what: str = "created") -> None:
    """Something happens to the row that is due the longest."""
    row = take(store, batch)
    store.save(
        row, state="sending", due_at=None, content=row.content or {}, events=[{"what": what}]
    )


def test_rows_of_every_worker_and_batch_count_for_an_hour(place: Place) -> None:
    store, other = place.store(), place.open()
    vendors, others = add_rows(store, 6), add_rows(store, 2, "others")
    limit = RowLimit(store, 3)
    assert limit.count_left() == 3
    create(other, vendors)
    create(other, others)
    create(other, others, "delivered")
    assert limit.count_left() == 1
    first, second, third = (take(store, vendors) for number in range(3))
    assert limit.postpone(first) is None
    assert limit.postpone(first) is None
    later = [limit.postpone(each) or 0 for each in (second, third, second)]
    assert store.now() + HOUR - MINUTE < later[0] == later[2] <= later[1] <= store.now() + HOUR
    assert limit.take_warnings()[0].startswith("2 rows are left for later, from ")
    assert limit.take_warnings() == ()
    store.clock_offset = HOUR
    assert (limit.count_left(), limit.postpone(second)) == (3, None)


def test_what_is_given_back_makes_room(place: Place) -> None:
    store = place.store()
    batch, limit = add_rows(store, 3), RowLimit(store, 1)
    first, second = (take(store, batch) for number in range(2))
    assert limit.postpone(first) is None
    limit.give_back(first)
    assert limit.postpone(second) is None
    limit.give_back(first)
    assert limit.count_left() == 0


def test_more_rows_than_an_hour_takes_are_spread(place: Place) -> None:
    store = place.store()
    batch, limit = add_rows(store, 6), RowLimit(store, 2)
    rows = [take(store, batch) for number in range(6)]
    now, moments = store.now(), [limit.postpone(row) for row in rows]
    assert moments[:2] == [None, None]
    assert [round(((each or 0) - now) / HOUR) for each in moments[2:]] == [1, 1, 2, 2]
