"""Data keys: what seals a batch, wrapped under its credential; and what a rotation and `rekey` make
of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from sealpipe.batch.database.data_keys import unwrap_data_keys
from sealpipe.batch.database.keyring import BatchKeyring
from sealpipe.batch.database.opening import open_store
from sealpipe.batch.database.records import Batch, NewRow, Row
from sealpipe.batch.database.sealing import CredentialOpener, DataKey, KeyWrapper
from sealpipe.batch.database.statements import FIND_DATA_KEYS, LIST_BATCHES
from sealpipe.batch.database.store import BatchStore
from sealpipe.errors import StateError
from unit.batch.stores import MINUTE, SERVICE, TABLES, Place, add_rows, make_credential, take

DAMAGE = "changed by something other than sealpipe"
SEALED = ("sealpipe_data_keys", *(f"sealpipe_{name}" for name in TABLES))


def fill(store: BatchStore, name: str = "vendors") -> tuple[Batch, Row]:
    """A batch of three rows, of which one, still held, has an effect and an event."""
    batch = add_rows(store, 3, name)
    row = take(store, batch)
    step(store, row, 1)
    saved = store.read_row(batch, row.id)
    assert saved is not None
    return batch, saved


def step(store: BatchStore, row: Row, number: int) -> None:
    """Write one effect and one event."""
    effect = store.effects.begin(row, f"{number}/create", {"n": number})
    assert effect is not None
    store.effects.finish(effect, "done", {"n": number})
    events = [{"n": number}]
    store.save(row, state="sent", due_at=None, content={"n": number}, events=events, keep=True)


def read_all(store: BatchStore) -> tuple[Any, ...]:
    """Everything that a batch holds, opened."""
    batch = store.find_batch("vendors")
    assert batch is not None
    rows = list(store.list_rows(batch, contents=True))
    effects = [[(each.name, each.content) for each in store.effects.list(row)] for row in rows]
    history = [store.read_history(row) for row in rows]
    return batch.content, [(row.key, row.content) for row in rows], effects, history


def read_data_keys(place: Place, batch: Batch, store: BatchStore) -> list[DataKey]:
    """The data keys of a batch, the oldest first."""
    found = place.database().read(FIND_DATA_KEYS, batch=batch.id)
    keys = unwrap_data_keys(KeyWrapper(store.credential, batch.id), found)
    return sorted(keys, key=lambda each: each.created_at)


def list_blobs(place: Place) -> Iterator[bytes]:
    for rows in place.tables().values():
        yield from (row[-1] for row in rows)


def test_each_blob_begins_with_the_id_of_its_data_key(place: Place) -> None:
    store = place.store()
    batch, _ = fill(store)
    (key,) = read_data_keys(place, batch, store)
    assert {blob[:8] for blob in list_blobs(place)} == {key.id}
    assert place.database().read("SELECT key_id FROM sealpipe_data_keys") == [
        (place.credential.key_id,)
    ]


def test_a_rotation_wraps_data_keys_anew_and_begins_one(place: Place) -> None:
    old = place.store()
    batch, row = fill(old)
    (first,) = read_data_keys(place, batch, old)
    wrapped = place.database().read(FIND_DATA_KEYS, batch=batch.id)
    new = place.store(make_credential(), previous=place.credential)
    content = read_all(new)
    keys = read_data_keys(place, batch, new)
    assert [key.id for key in keys][:1] == [first.id]
    assert not {each[-1] for each in place.database().read(FIND_DATA_KEYS, batch=batch.id)} & {
        each[-1] for each in wrapped
    }
    before = set(list_blobs(place))
    step(new, row, 2)
    assert {blob[:8] for blob in set(list_blobs(place)) - before} == {keys[1].id}
    assert read_all(place.store(new.credential)) != content
    with pytest.raises(StateError, match=f"belongs to the API key {new.credential.key_id}"):
        old.read_row(batch, row.id)


def test_each_rotation_adds_a_data_key_also_if_the_clock_was_set_back(place: Place) -> None:
    store = place.store()
    batch, _ = fill(store)
    content = read_all(store)
    place.change("DELETE FROM sealpipe_history")  # of an earlier time
    late = DataKey.create(batch.id, store.now() + 60 * MINUTE)
    place.change(
        "INSERT INTO sealpipe_data_keys (batch, id, key_id, created_at, wrapped) "
        "VALUES (:batch, :id, :key_id, :created_at, :wrapped)",
        batch=batch.id,
        id=late.id,
        key_id=place.credential.key_id,
        created_at=late.created_at,
        wrapped=KeyWrapper(place.credential, batch.id).wrap(late),
    )
    for count in (3, 4):
        store = place.store(make_credential(), previous=store.credential)
        assert read_all(store)[:3] == content[:3]
        keys = read_data_keys(place, batch, store)
        assert len(keys) == count
        assert keys[-1].created_at == late.created_at + count - 2
        assert next(iter(place.tables()["batches"]))[-1][:8] == keys[-1].id


def test_rekey_seals_everything_anew_and_forgets_the_older_keys(place: Place) -> None:
    fill(place.store())
    store = place.store(make_credential(), previous=place.credential)
    content = read_all(store)
    batch = store.find_batch("vendors")
    assert batch is not None
    older = {key.id for key in read_data_keys(place, batch, store)}
    before = place.tables()
    store.rekey(batch)
    (key,) = read_data_keys(place, batch, store)
    assert key.id not in older
    assert {blob[:8] for blob in list_blobs(place)} == {key.id}
    after = place.tables()
    assert {name: [row[:-1] for row in rows] for name, rows in before.items()} == {
        name: [row[:-1] for row in rows] for name, rows in after.items()
    }
    assert read_all(place.store(store.credential)) == content == read_all(store)


def test_rekey_leaves_other_batches_alone(place: Place) -> None:
    store = place.store()
    batch, _ = fill(store)
    other, _ = fill(store, "others")
    before = read_data_keys(place, other, store)
    store.rekey(batch)
    assert [key.id for key in read_data_keys(place, other, store)] == [key.id for key in before]
    assert list(place.store().list_rows(other, contents=True))


def test_who_has_a_batch_open_goes_on_after_rekey(place: Place) -> None:
    """Also with what it wanted to write before, and had not written yet."""
    one, two = place.store(), place.store()
    batch, row = fill(one)
    assert read_all(two) == read_all(one)
    with two.merge_writes(row):
        step(two, row, 2)
        one.rekey(batch)
    (key,) = read_data_keys(place, batch, one)
    assert {blob[:8] for blob in list_blobs(place)} == {key.id}
    one.rekey(batch)
    assert read_all(two) == read_all(one) == read_all(place.store())
    one.rekey(batch)
    two.save_batch(batch, {"digest": "new"})
    one.rekey(batch)
    assert read_all(two)[0] == {"digest": "new"}


def test_an_older_data_key_does_not_become_the_newest_again(place: Place) -> None:
    """Who has learned it, and can change the database, does not read what comes later."""
    store = place.store()
    batch, row = fill(store)
    (leaked,) = place.database().read(FIND_DATA_KEYS, batch=batch.id)
    store.rekey(batch)
    (newest,) = read_data_keys(place, batch, store)
    put = (
        "INSERT INTO sealpipe_data_keys (batch, id, key_id, created_at, wrapped) "
        "VALUES (:batch, :id, :key_id, :created_at, :wrapped)"
    )
    values = dict(zip(("id", "key_id", "created_at", "wrapped"), leaked, strict=True))
    place.change(put, batch=batch.id, **values)
    step(store, row, 2)
    assert {blob[:8] for blob in list_blobs(place)} == {newest.id}
    place.change("UPDATE sealpipe_data_keys SET created_at = created_at + 1000000000000")
    with pytest.raises(StateError, match=DAMAGE):
        read_all(place.store())
    place.change("DELETE FROM sealpipe_data_keys")
    place.change(put, batch=batch.id, **values)
    for late in (store, place.store()):
        with pytest.raises(StateError, match=DAMAGE):
            late.add_rows(batch, [])


def test_a_data_key_of_another_batch_and_a_missing_one_are_refused(place: Place) -> None:
    store = place.store()
    batch, _ = fill(store)
    other, _ = fill(store, "others")
    place.change("DELETE FROM sealpipe_data_keys WHERE batch = :id", id=batch.id)
    with pytest.raises(StateError, match=DAMAGE):
        place.store().find_batch("vendors")
    place.change("UPDATE sealpipe_data_keys SET batch = :new", new=batch.id)
    for name in (batch.name, other.name):
        with pytest.raises(StateError, match=DAMAGE):
            place.store().find_batch(name)


def test_purge_removes_data_keys(place: Place) -> None:
    store = place.store()
    batch, _ = fill(store)
    store.purge_batch(batch)
    assert place.database().read("SELECT id FROM sealpipe_data_keys") == []


def test_a_batch_that_is_purged_while_batches_are_listed_is_left_out(place: Place) -> None:
    store = place.store()
    fill(store)
    fill(store, "others")
    database, purging = place.database(), place.store()
    listing = open_store(database, place.credential, SERVICE)
    read = database.read

    def purge_first(statement: str, **parameters: object) -> Any:
        found = read(statement, **parameters)
        if statement == LIST_BATCHES:
            batch = purging.find_batch("others")
            assert batch is not None
            purging.purge_batch(batch)
        return found

    database.read = purge_first  # type: ignore[method-assign]
    assert [batch.name for batch in listing.list_batches()] == ["vendors"]


def test_a_worker_of_schema_1_has_another_key_check(place: Place) -> None:
    """So one that runs on during an upgrade writes nothing that nobody could open."""
    batch, _ = fill(place.store())
    ((check,),) = place.database().read("SELECT key_check FROM sealpipe_batches")
    assert check == KeyWrapper(place.credential, batch.id).key_check
    assert check != CredentialOpener(place.credential, batch.id).key_check


def test_no_data_key_shows_itself() -> None:
    key = DataKey.create("b" * 24, 1)
    assert vars(key)["_key"].hex() not in repr(key)
    assert repr(vars(key)["_key"]) not in repr(key)


def test_a_process_that_has_not_written_yet_seals_with_the_newest_too(place: Place) -> None:
    """Whatever the database then says of an older one."""
    batch, _ = fill(place.store())
    store = place.store(make_credential(), previous=place.credential)
    reopened = place.store(store.credential)
    assert read_all(store) == read_all(reopened)
    older, _ = read_data_keys(place, batch, store)
    place.change(
        "UPDATE sealpipe_data_keys SET created_at = created_at + 1000000000000 WHERE id = :id",
        id=older.id,
    )
    with pytest.raises(StateError, match=DAMAGE):
        reopened.add_rows(batch, [NewRow("late", "new", None, {})])


def test_data_keys_that_a_restored_backup_left_there_go_with_a_new_batch(place: Place) -> None:
    """A dump of schema 1 is restored over the tables that it has: the data keys are not among
    them.
    """
    store = place.store(make_credential())
    fill(store)
    for table in ("batches", "rows", "effects", "history"):
        place.change(f"DELETE FROM sealpipe_{table}")  # noqa: S608 - a name from above
    fill(place.store())
    assert read_all(place.store())[0] == {"digest": "abc"}


def test_rows_are_not_sealed_under_a_data_key_of_a_batch_that_was_purged(place: Place) -> None:
    """Also if another thread of the process has opened the batch of the same name meanwhile."""
    store, other = place.store(), place.store()
    batch, _ = fill(store)
    real = store.now

    def replace_batch() -> int:
        store.now = real  # type: ignore[method-assign]
        other.purge_batch(batch)
        add_rows(other, 0)
        assert store.find_batch("vendors") is not None
        return real()

    store.now = replace_batch  # type: ignore[method-assign]
    assert store.add_rows(batch, [NewRow("late", "new", None, {})]) == 1
    found = other.find_row(batch, "late")
    assert list(place.store().list_rows(batch, contents=True)) == [found]


def test_a_batch_is_not_sealed_under_a_data_key_of_one_that_was_purged(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same for its own content."""
    store, other = place.store(), place.store()
    batch, _ = fill(store)
    real = BatchKeyring.write

    def replace_batch(*words: Any, **options: Any) -> Any:
        monkeypatch.undo()
        other.purge_batch(batch)
        add_rows(other, 0)
        assert store.find_batch("vendors") is not None
        return real(*words, **options)

    monkeypatch.setattr(BatchKeyring, "write", replace_batch)
    store.save_batch(batch, {"digest": "new"})
    found = place.store().find_batch("vendors")
    assert found is not None
    assert found.content == {"digest": "new"}


READERS: Mapping[str, Callable[[BatchStore, Batch, Row], object]] = {
    "a row": lambda store, batch, row: store.read_row(batch, row.id),
    "rows": lambda store, batch, _: list(store.list_rows(batch, contents=True)),
    "an effect": lambda store, _, row: store.effects.find(row, "1/create"),
    "effects": lambda store, _, row: store.effects.list(row),
    "the history of a row": lambda store, _, row: store.read_history(row),
    "all histories": lambda store, batch, _: list(store.history.read_since(batch, 0)),
    "a batch": lambda store, *_: store.find_batch("vendors"),
    "batches": lambda store, *_: store.list_batches(),
}


@pytest.mark.parametrize("name", READERS)
def test_who_reads_is_not_disturbed_by_rekeys_before_it_has_opened_what_it_read(
    place: Place, name: str
) -> None:
    """Each makes another data key, and the database has forgotten the one that was read."""
    rekeying, database = place.store(), place.database()
    batch, row = fill(rekeying)
    reading = open_store(database, place.credential, SERVICE)
    expected = READERS[name](reading, batch, row)
    read, rekeys = database.read, 2

    def rekey_then(statement: str, **parameters: object) -> Any:
        nonlocal rekeys
        found = read(statement, **parameters)
        if rekeys and statement != FIND_DATA_KEYS:
            rekeys -= 1
            rekeying.rekey(batch)
        return found

    rekeying.rekey(batch)
    database.read = rekey_then  # type: ignore[method-assign]
    assert READERS[name](reading, batch, row) == expected
    assert rekeys == 0


def test_a_process_says_that_its_database_was_restored_from_before_a_rekey(place: Place) -> None:
    """And not that it is damaged: started again, it would go on."""
    store = place.store()
    batch, row = fill(store)
    backup = {name: place.database().read(f"SELECT * FROM {name}") for name in SEALED}  # noqa: S608
    store.rekey(batch)
    step(store, row, 2)
    for name, rows in backup.items():
        place.change(f"DELETE FROM {name}")  # noqa: S608
        for values in rows:
            parts = {f"v{number}": value for number, value in enumerate(values)}
            names = ", ".join(f":{part}" for part in parts)
            place.change(f"INSERT INTO {name} VALUES ({names})", **parts)  # noqa: S608
    read_all(store)
    with pytest.raises(StateError, match=r"an older data key.*restored from a backup") as refused:
        step(store, row, 2)
    assert "adopt" in refused.value.remedy
    read_all(place.store())
    step(place.store(), row, 2)


def test_a_blob_that_is_no_bytes_is_refused_while_all_is_sealed_anew(in_sqlite: Place) -> None:
    store = in_sqlite.store()
    batch, _ = fill(store)
    in_sqlite.change("UPDATE sealpipe_rows SET blob = 7")
    with pytest.raises(StateError, match=DAMAGE):
        store.rekey(batch)
