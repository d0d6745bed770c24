"""Batches, rows and effects in both databases: what is written once, who gets it, and who comes too
late.
"""

from __future__ import annotations

import time
from contextvars import copy_context

import pytest

from sealpipe.batch.database import postgres_queue
from sealpipe.batch.database.interface import DatabaseUnavailableError, prepare_schema
from sealpipe.batch.database.opening import open_store
from sealpipe.batch.database.records import ConflictError, NewRow, Row
from sealpipe.batch.database.statements import SCHEMA_VERSION
from sealpipe.cancellation import Cancellation, CancelledCallError, current, make_current
from sealpipe.errors import StateError
from sealpipe.secret import Secret
from unit.batch.stores import (
    MINUTE,
    SERVICE,
    Place,
    PostgresPlace,
    add_rows,
    be_thought_dead,
    make_credential,
    take,
    take_many,
)

DAY = 24 * 60 * MINUTE
PATIENCE = 60.0
"""Seconds that a busy machine may need."""


def test_a_batch_is_added_once_and_found_by_every_worker(place: Place) -> None:
    store = place.store()
    assert store.find_batch("vendors") is None
    batch = store.add_batch("vendors", {"digest": "abc", "list": [1, None, True, "ü"]})
    assert (batch.name, batch.service, batch.version) == ("vendors", SERVICE, 1)
    assert batch.content == {"digest": "abc", "list": [1, None, True, "ü"]}
    assert store.add_batch("vendors", {"digest": "other"}) == batch
    assert place.store().find_batch("vendors") == batch
    assert [each.name for each in (store.add_batch("alpha", {}), *store.list_batches())] == [
        "alpha",
        "alpha",
        "vendors",
    ]


def test_a_batch_that_has_changed_is_not_overwritten(place: Place) -> None:
    store = place.store()
    batch = store.add_batch("vendors", {})
    saved = store.save_batch(batch, {"n": 1})
    assert (saved.version, store.find_batch("vendors")) == (2, saved)
    with pytest.raises(ConflictError, match="another worker has changed this batch"):
        store.save_batch(batch, {"n": 2})
    assert store.find_batch("vendors") == saved


def test_rows_are_added_once_by_their_keys(place: Place) -> None:
    store = place.store()
    batch = add_rows(store, 3)
    new = [NewRow("row 1", "other", 0, {}), NewRow("row 3", "new", None, {"n": 3})]
    assert store.add_rows(batch, new) == 1
    assert store.count_states(batch) == {"new": 4}
    row = store.find_row(batch, "row 3")
    assert row == store.read_row(batch, row.id if row else "")
    assert isinstance(row, Row)
    assert (row.key, row.content, row.due_at, row.version, row.generation) == (
        "row 3",
        {"n": 3},
        None,
        1,
        1,
    )
    assert store.find_row(batch, "row 4") is None


def test_rows_are_listed_page_by_page_with_and_without_contents(place: Place) -> None:
    store = place.store()
    batch = add_rows(store, 1200)
    assert len({row.id for row in store.list_rows(batch)}) == 1200
    assert all(row.key is None and row.content is None for row in store.list_rows(batch))
    assert {row.key for row in store.list_rows(batch, contents=True)} == {
        f"row {each}" for each in range(1200)
    }
    first = store.find_row(batch, "row 1150")
    assert first is not None
    early = store.list_rows(batch, due_by=first.due_at, contents=True)
    assert {row.key for row in early} == {f"row {each}" for each in range(1150, 1200)}
    row = take(store, batch)
    store.save(row, state="waiting", due_at=None, content={})
    assert [each.id for each in store.list_rows(batch, states=["waiting", "unknown"])] == [row.id]
    assert store.count_states(batch) == {"new": 1199, "waiting": 1}


def test_due_rows_are_taken_in_their_order_and_by_one_worker(place: Place) -> None:
    store = place.store()
    other = place.store() if isinstance(place, PostgresPlace) else store
    batch = add_rows(store, 3)
    store.add_rows(
        batch,
        [NewRow("later", "new", store.now() + 2 * MINUTE, {}), NewRow("never", "new", None, {})],
    )
    first, second = take(store, batch), take(store, batch)
    assert [first.key, second.key] == ["row 2", "row 1"]
    assert [row.key for row in take_many(other, batch)] == ["row 0"]
    assert take_many(other, batch) == []
    assert store.find_next_due(batch) == first.due_at
    store.give_back(first)
    store.give_back(first)
    assert [row.key for row in take_many(other, batch)] == ["row 2"]


def test_a_row_is_due_again_when_it_says_so(place: Place) -> None:
    store = place.store()
    batch = add_rows(store, 1)
    row = take(store, batch)
    store.save(row, state="sent", due_at=store.now() + MINUTE, content={})
    assert take_many(store, batch) == []
    store.clock_offset = 2 * MINUTE
    store.reconcile([batch])
    again = take(store, batch)
    assert (again.key, again.state) == ("row 0", "sent")
    store.give_back(row)
    assert take_many(store, batch) == [], "whoever gave it back has it no more"


def test_a_named_row_is_taken_if_nobody_has_it(place: Place) -> None:
    store = place.store()
    batch = add_rows(store, 1)
    store.add_rows(batch, [NewRow("later", "new", store.now() + MINUTE, {})])
    row = store.find_row(batch, "later")
    assert row is not None
    with store.taking(batch, row.id) as taken:
        assert taken is not None
        assert (taken.key, taken.version) == ("later", 1)
        assert store.take(batch, row.id) is None
    again = store.take(batch, row.id)
    assert again is not None
    assert store.take(batch, "0" * 24) is None
    due = take(store, batch)
    assert store.take(batch, due.id) is None


def test_a_row_that_is_moved_by_hand_is_due_then(in_postgres: Place) -> None:
    """Its job that waited for a week is replaced with the row."""
    store = in_postgres.store()
    batch = add_rows(store, 1)
    store.save(take(store, batch), state="sent", due_at=store.now() + 7 * DAY, content={})
    row = store.find_row(batch, "row 0")
    assert row is not None
    taken = store.take(batch, row.id)
    assert taken is not None
    store.save(taken, state="sent", due_at=store.now(), content={})
    assert len(in_postgres.database().read("SELECT id FROM procrastinate_jobs")) == 1
    assert take(store, batch).id == row.id


def test_a_due_row_without_a_job_gets_one(in_postgres: Place) -> None:
    """And the rows of a worker that ended are there for others, and of one that forgot them."""
    store, other = in_postgres.store(), in_postgres.store()
    batch = add_rows(store, 3)
    in_postgres.change("DELETE FROM procrastinate_jobs")
    assert take_many(other, batch) == []
    other.reconcile([batch])
    assert len(take_many(store, batch)) == 3
    store.close()
    assert take_many(other, batch) == []
    other.reconcile([batch])
    assert len(take_many(other, batch)) == 3


def test_a_row_that_was_given_back_without_a_database_is_due_after_the_next_heartbeat(
    in_postgres: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not only when all due rows are looked through, once a minute."""
    monkeypatch.setattr(postgres_queue, "HEARTBEAT_SECONDS", 0.05)
    store = in_postgres.store()
    batch = add_rows(store, 1)
    row = take(store, batch)

    def fail(*_: object, **__: object) -> None:
        raise DatabaseUnavailableError("it was restarted")

    with monkeypatch.context() as patch:
        patch.setattr(store._database, "transaction", fail)
        store.give_back(row)
    assert store.take_due([batch]) is None
    ends_at = time.monotonic() + PATIENCE
    while (again := store.take_due([batch])) is None:
        assert time.monotonic() < ends_at
        time.sleep(0.02)
        store.reconcile([batch], is_thorough=False)
    assert again.id == row.id


def test_the_rows_of_a_dead_worker_are_free_though_the_clock_was_set_back(
    in_postgres: Place,
) -> None:
    store, other = in_postgres.store(), in_postgres.store()
    batch = add_rows(store, 1)
    row = take(store, batch)
    in_postgres.change(
        "UPDATE procrastinate_workers SET last_heartbeat = now() + interval '1 hour'"
    )
    other.reconcile([batch])
    assert take(other, batch).id == row.id


def test_a_worker_that_was_thought_dead_goes_on_with_other_rows(in_postgres: Place) -> None:
    store, other = in_postgres.store(), in_postgres.store()
    batch = add_rows(store, 2)
    row = take(store, batch)
    be_thought_dead(in_postgres, other, batch)
    again = store.take_due([batch])
    assert again is not None
    with pytest.raises(ConflictError):
        store.save(row, state="done", due_at=None, content={})


def test_a_saved_row_has_its_next_version_and_its_history(place: Place) -> None:
    store = place.store()
    batch = add_rows(store, 1)
    row = take(store, batch)
    kept = store.save(
        row,
        state="new",
        due_at=7,
        content={"n": 1},
        events=[{"what": "a"}, {"what": "b"}],
        keep=True,
    )
    assert (kept.since, kept.version) == (row.since, 2)
    saved = store.save(
        kept,
        state="sent",
        due_at=None,
        content={"n": Secret("x")},
        generation=2,
        events=[{"what": "c"}],
    )
    found = store.find_row(batch, "row 0")
    assert found is not None
    assert (found.state, found.due_at, found.version, found.generation) == ("sent", None, 3, 2)
    assert (found.key, found.content, found.since) == ("row 0", {"n": "x"}, saved.since)
    assert found.since > row.since
    assert [event.content["what"] for event in store.read_history(found)] == ["a", "b", "c"]
    with pytest.raises(ConflictError, match="another worker has changed this row"):
        store.save(kept, state="sent", due_at=None, content={}, events=[{"what": "d"}])
    assert len(store.read_history(found)) == 3


def test_an_effect_is_begun_by_one_worker_and_done_once(place: Place) -> None:
    store = place.store()
    row = take(store, add_rows(store, 1))
    assert store.effects.find(row, "1/create") is None
    effect = store.effects.begin(row, "1/create", {"n": 1})
    assert effect is not None
    assert (effect.state, effect.name, store.effects.find(row, "1/create")) == (
        "sending",
        "1/create",
        effect,
    )
    assert place.store().effects.begin(row, "1/create", {"n": 2}) is None
    done = store.effects.finish(effect, "done", {"n": 3})
    assert store.effects.begin(row, "1/create", {"n": 4}) is None
    assert store.effects.list(row) == [done]
    with pytest.raises(ConflictError, match="another worker has changed this effect"):
        store.effects.finish(effect, "failed", {})


def test_after_a_cancel_no_effect_begins_and_what_was_begun_is_finished(in_sqlite: Place) -> None:
    store = in_sqlite.store()
    row = take(store, add_rows(store, 1))
    begun = store.effects.begin(row, "1/create", {})
    assert begun is not None

    def go_on() -> None:
        make_current(Cancellation())
        current().cancel()
        with pytest.raises(CancelledCallError):
            store.effects.begin(row, "1/message/0", {})
        with pytest.raises(CancelledCallError):
            store.effects.repeat(row, begun, {})
        assert store.effects.list(row) == [begun]
        store.effects.finish(begun, "done", {})

    copy_context().run(go_on)
    assert [each.state for each in store.effects.list(row)] == ["done"]


def test_a_failed_effect_and_an_intended_one_can_be_begun(place: Place) -> None:
    store = place.store()
    row = take(store, add_rows(store, 1))
    intended = store.effects.intend(row, "1/message/0", {"to": "a"})
    assert store.effects.intend(row, "1/message/0", {"to": "b"}) == intended
    first = store.effects.begin(row, "1/message/0", {})
    assert first is not None
    store.effects.finish(first, "failed", {})
    second = store.effects.begin(row, "1/message/0", {})
    assert second is not None
    assert (second.state, second.version) == ("sending", 4)


def test_an_unclear_effect_is_repeated_by_one_worker(place: Place) -> None:
    store = place.store()
    row = take(store, add_rows(store, 1))
    begun = store.effects.begin(row, "1/message/0", {})
    assert begun is not None
    repeated = store.effects.repeat(row, begun, {"again": True})
    with pytest.raises(ConflictError):
        store.effects.repeat(row, begun, {})
    amended = store.effects.amend(repeated, {"more": 1})
    assert (amended.state, amended.at) == ("sending", repeated.at)
    assert store.effects.list(row) == [amended]
    recorded = store.effects.record(row, "1/submission/a", {"data": "x"})
    assert recorded.state == "done"
    assert store.effects.record(row, "1/submission/a", {"data": "y"}) == recorded


def test_a_worker_that_was_thought_dead_begins_nothing(in_postgres: Place) -> None:
    store, other = in_postgres.store(), in_postgres.store()
    batch = add_rows(store, 1)
    row = take(store, batch)
    begun = store.effects.begin(row, "1/create", {})
    assert begun is not None
    be_thought_dead(in_postgres, other, batch)
    take(other, batch)
    for late in (
        lambda: store.effects.begin(row, "1/message/0", {}),
        lambda: store.effects.intend(row, "1/message/0", {}),
        lambda: store.effects.repeat(row, begun, {}),
        lambda: store.save(row, state="done", due_at=None, content={}),
    ):
        with pytest.raises(ConflictError):
            late()
    assert store.effects.list(row) == [begun]


@pytest.mark.parametrize("generation", [1, 2])
def test_whoever_saw_an_older_version_begins_nothing(place: Place, generation: int) -> None:
    store, other = place.store(), place.store()
    batch = add_rows(store, 1)
    row, seen = take(store, batch), other.find_row(batch, "row 0")
    assert seen is not None
    begun = store.effects.begin(row, "1/create", {})
    assert begun is not None
    kept = store.save(row, state="sent", due_at=None, content={}, generation=generation, keep=True)
    for late in (
        lambda: other.effects.begin(seen, "1/message/0", {}),
        lambda: other.effects.repeat(seen, begun, {}),
    ):
        with pytest.raises(ConflictError):
            late()
    # What began with an older version of the same worker's goes on.
    assert store.effects.begin(row, "1/message/0", {}) is not None
    assert store.effects.begin(kept, "1/message/1", {}) is not None


def test_a_purged_batch_leaves_nothing_and_takes_nothing(place: Place) -> None:
    store = place.store()
    other = add_rows(store, 1, "others")
    batch = add_rows(store, 2)
    row = take(store, batch)
    store.effects.begin(row, "1/create", {})
    store.purge_batch(batch)
    assert store.find_batch("vendors") is None
    assert list(store.list_rows(batch)) == []
    assert store.count_states(other) == {"new": 1}
    store.give_back(row)
    for late in (
        lambda: store.save(row, state="done", due_at=None, content={}),
        lambda: store.effects.begin(row, "1/message/0", {}),
        lambda: store.add_rows(batch, [NewRow("x", "new", None, {})]),
    ):
        with pytest.raises(ConflictError):
            late()
    assert {
        len(rows) for name, rows in place.tables().items() if name in ("effects", "history")
    } == {0}


def test_a_batch_of_the_same_name_after_a_purge_is_another_one(place: Place) -> None:
    store, late = place.store(), place.store()
    old = late.add_batch("vendors", {})
    store.purge_batch(add_rows(store, 1))
    new = add_rows(store, 1)
    with pytest.raises(ConflictError):
        late.add_rows(old, [NewRow("row 0", "new", None, {})])
    assert late.add_rows(late.add_batch("vendors", {}), [NewRow("row 0", "new", None, {})]) == 0
    assert store.count_states(new) == {"new": 1}


def test_another_credential_changes_nothing_and_is_told_what_to_set(place: Place) -> None:
    add_rows(place.store(), 2)
    before = place.tables()
    stranger = place.store(make_credential())
    for attempt in (stranger.find_batch, lambda name: stranger.add_batch(name, {})):
        with pytest.raises(
            StateError, match=f"belongs to the API key {place.credential.key_id}"
        ) as refused:
            attempt("vendors")
        assert "SEALPIPE_API_KEY_PREVIOUS" in refused.value.remedy
    assert (stranger.list_batches(), dict(stranger.count_others())) == (
        [],
        {place.credential.key_id: 1},
    )
    assert not place.store().count_others()
    assert place.tables() == before


def test_another_service_changes_nothing(place: Place) -> None:
    add_rows(place.store(), 1)
    before = place.tables()
    elsewhere = place.store(service="https://other.example/v1")
    with pytest.raises(StateError, match=r"belongs to the service at https://api\.example/v1"):
        elsewhere.add_batch("vendors", {})
    assert (elsewhere.list_batches(), place.tables()) == ([], before)


def test_a_rotated_credential_takes_over_and_the_old_one_is_refused(place: Place) -> None:
    old = place.store()
    batch = add_rows(old, 700)
    row = take(old, batch)
    effect = old.effects.begin(row, "1/create", {"n": 1})
    assert effect is not None
    row = old.save(
        row, state="sent", due_at=None, content={"n": 1}, events=[{"what": "sent"}], keep=True
    )
    before = place.tables()
    new = place.store(make_credential(), previous=place.credential)
    taken = new.find_batch("vendors")
    assert taken is not None
    assert (taken.id, taken.content, taken.key_id) == (
        batch.id,
        batch.content,
        new.credential.key_id,
    )
    assert {each.key for each in new.list_rows(taken, contents=True)} == {
        f"row {each}" for each in range(700)
    }
    assert new.find_row(taken, str(row.key)) == row
    assert new.effects.list(row) == [effect]
    assert [event.content for event in new.read_history(row)] == [{"what": "sent"}]
    after = place.tables()
    assert [after[name] for name in ("rows", "effects", "history")] == [
        before[name] for name in ("rows", "effects", "history")
    ]
    assert not {each[-1] for each in before["batches"]} & {each[-1] for each in after["batches"]}
    for late in (
        lambda: old.add_rows(batch, []),
        lambda: old.save(row, state="x", due_at=None, content={}),
        lambda: old.effects.finish(effect, "done", {}),
        lambda: old.find_batch("vendors"),
    ):
        with pytest.raises(StateError, match=f"belongs to the API key {new.credential.key_id}"):
            late()
    assert place.tables() == after


def test_tables_of_a_newer_sealpipe_are_refused(place: Place) -> None:
    add_rows(place.store(), 1)
    newer = str(SCHEMA_VERSION + 1)
    place.change("UPDATE sealpipe_meta SET value = :newer WHERE name = 'schema'", newer=newer)
    for opening in (
        lambda: open_store(place.database(), place.credential, SERVICE),
        lambda: prepare_schema(place.database()),
    ):
        with pytest.raises(StateError, match="made by a newer sealpipe") as refused:
            opening()
        assert "install that version" in refused.value.remedy


OLDER = (
    "UPDATE sealpipe_meta SET value = '2' WHERE name = 'schema'",
    "ALTER TABLE sealpipe_rows ADD COLUMN holder TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE sealpipe_rows ADD COLUMN held_until BIGINT NOT NULL DEFAULT 0",
    "CREATE INDEX sealpipe_rows_due ON sealpipe_rows (batch, due_at, held_until)",
)
"""What tables of schema 2 had."""


def test_missing_and_older_tables_are_made_here_or_by_a_command(place: Place) -> None:
    for problem, command in (("missing", "init"), ("of an older sealpipe", "upgrade")):
        database = place.database()
        if database.is_embedded:
            assert open_store(database, place.credential, SERVICE).list_batches() == []
        else:
            with pytest.raises(StateError, match=problem) as refused:
                open_store(database, place.credential, SERVICE)
            assert f"sealpipe batch database {command}" in refused.value.remedy
        prepare_schema(place.database())
        assert open_store(place.database(), place.credential, SERVICE).list_batches() == []
        for statement in OLDER:
            place.change(statement)
