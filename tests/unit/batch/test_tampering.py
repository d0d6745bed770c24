"""Whoever can write to the database can withhold and repeat: neither read, nor forge, nor run
anything.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest

from sealpipe.api.operation import Credential
from sealpipe.batch.database.records import Batch, NewRow, Row
from sealpipe.batch.database.sealing import (
    Cell,
    DataKey,
    KeyWrapper,
    derive_idempotency_key,
    derive_request_key,
    make_batch_id,
    make_rate_id,
)
from sealpipe.batch.database.statements import FIND_DATA_KEYS
from sealpipe.batch.database.store import BatchStore
from sealpipe.errors import StateError, UsageError
from support.damage import flipped
from support.leaks import Detector
from unit.batch.stores import Place, add_rows, make_credential, take

CANARIES = {
    name: f"canary-of-the-{name}-Zürich & <co>".encode()
    for name in ("batch", "key", "content", "effect", "effect content", "event")
}
DETECTOR = Detector(CANARIES)
DAMAGE = "changed by something other than sealpipe"


class Filled:
    """A batch with two rows, each with an effect and a history, and with an older version of the
    first row.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.store = place.store()
        self.batch = add_rows(self.store, 2)
        self.older = place.tables()
        self.rows = [self._step(), self._step()]

    def _step(self) -> Row:
        row = take(self.store, self.batch)
        effect = self.store.effects.begin(row, "1/create", {"of": row.key})
        assert effect is not None
        self.store.effects.finish(effect, "done", {"of": row.key})
        return self.store.save(
            row,
            state="sent",
            due_at=self.store.now(),
            content={"of": row.key},
            events=[{"of": row.key}] * 2,
        )

    def assert_refuses(
        self, *, rows: bool = False, effects: bool = False, history: bool = False
    ) -> None:
        """What was changed is refused by a worker of its own, and the rest can still be read."""
        store = self.place.store()
        batch = store.find_batch("vendors")
        assert batch is not None
        readers: list[tuple[bool, Callable[[], object]]] = [
            (rows, lambda: list(store.list_rows(batch, contents=True))),
            (effects, lambda: [store.effects.list(row) for row in self.rows]),
            (history, lambda: [store.read_history(row) for row in self.rows]),
        ]
        for is_refused, read in readers:
            if is_refused:
                with pytest.raises(StateError, match=DAMAGE) as refused:
                    read()
                assert "adopt" in refused.value.remedy
            else:
                read()


@pytest.fixture
def filled(place: Place) -> Filled:
    return Filled(place)


def test_blobs_of_two_rows_are_not_swapped(filled: Filled) -> None:
    first, second = filled.place.tables()["rows"]
    for row, blob in ((first[1], second[-1]), (second[1], first[-1])):
        filled.place.change(
            "UPDATE sealpipe_rows SET blob = :blob WHERE id = :row", row=row, blob=blob
        )
    filled.assert_refuses(rows=True)


def test_two_rows_are_not_swapped(filled: Filled) -> None:
    first, second = (row[1] for row in filled.place.tables()["rows"])
    for old, new in ((first, "other"), (second, first), ("other", second)):
        filled.place.change("UPDATE sealpipe_rows SET id = :new WHERE id = :old", old=old, new=new)
    filled.assert_refuses(rows=True)


def test_effects_and_histories_of_two_rows_are_not_swapped(filled: Filled) -> None:
    first, second = (row[1] for row in filled.place.tables()["rows"])
    for old, new in ((first, "other"), (second, first), ("other", second)):
        filled.place.change(
            "UPDATE sealpipe_effects SET row_id = :new WHERE row_id = :old", old=old, new=new
        )
        filled.place.change(
            "UPDATE sealpipe_history SET row_id = :new WHERE row_id = :old", old=old, new=new
        )
    filled.assert_refuses(effects=True, history=True)


def test_events_do_not_change_their_order(filled: Filled) -> None:
    first, second, *_ = (row[2] for row in filled.place.tables()["history"])
    for old, new in ((first, -1), (second, first), (-1, second)):
        filled.place.change(
            "UPDATE sealpipe_history SET number = :new WHERE number = :old", old=old, new=new
        )
    filled.assert_refuses(history=True)


@pytest.mark.parametrize("table", ["rows", "effects", "history"])
def test_a_truncated_or_changed_blob_is_refused(filled: Filled, table: str) -> None:
    change = {
        "rows": "UPDATE sealpipe_rows SET blob = :blob WHERE blob = :old",
        "effects": "UPDATE sealpipe_effects SET blob = :blob WHERE blob = :old",
        "history": "UPDATE sealpipe_history SET blob = :blob WHERE blob = :old",
    }[table]
    blob = filled.place.tables()[table][0][-1]
    evil = pickle.dumps({"key": "row 0", "content": {}})
    for wrong in (b"", blob[:11], blob[:-1], flipped(blob), flipped(blob, 0), evil):
        filled.place.change(change, blob=wrong, old=blob)
        filled.assert_refuses(
            rows=table == "rows", effects=table == "effects", history=table == "history"
        )
        filled.place.change(change, blob=blob, old=wrong)
    filled.assert_refuses()


def test_an_older_blob_of_the_same_row_is_refused(filled: Filled) -> None:
    row = filled.older["rows"][0]
    filled.place.change(
        "UPDATE sealpipe_rows SET blob = :blob WHERE id = :row", row=row[1], blob=row[-1]
    )
    filled.assert_refuses(rows=True)


@pytest.mark.parametrize(
    ("statement", "refused"),
    [
        ("UPDATE sealpipe_rows SET state = 'new'", "rows"),
        ("UPDATE sealpipe_rows SET generation = 2", "rows"),
        ("UPDATE sealpipe_rows SET version = version - 1", "rows"),
        ("UPDATE sealpipe_effects SET state = 'failed'", "effects"),
        ("UPDATE sealpipe_effects SET version = version - 1", "effects"),
        ("UPDATE sealpipe_effects SET id = 'other'", "effects"),
    ],
)
def test_a_state_or_version_changed_by_hand_is_refused(
    filled: Filled, statement: str, refused: str
) -> None:
    filled.place.change(f"{statement} WHERE version > 1 AND blob IS NOT NULL")
    filled.assert_refuses(**{refused: True})


@pytest.mark.parametrize(
    "state",
    ["<https://evil.example|3> done", "a\n::error::b", "\u0434\u043e\u043d\u0435", "x" * 17, ""],
)
def test_a_state_that_is_a_text_is_counted_nowhere(filled: Filled, state: str) -> None:
    """Counts are told to the team and are in no blob."""
    filled.place.change("UPDATE sealpipe_rows SET state = :state WHERE version > 1", state=state)
    with pytest.raises(StateError, match=DAMAGE):
        filled.store.count_states(filled.batch)


@pytest.mark.parametrize("moment", [2**63 - 1, -(2**63)])
@pytest.mark.parametrize("column", ["due_at", "since"])
def test_a_time_that_is_none_is_refused(filled: Filled, column: str, moment: int) -> None:
    """It would end each report and list with an error that reads like a bug."""
    filled.place.change(f"UPDATE sealpipe_rows SET {column} = :moment", moment=moment)  # noqa: S608
    filled.assert_refuses(rows=True)


def test_a_time_in_a_history_that_is_none_is_refused(filled: Filled) -> None:
    filled.place.change("UPDATE sealpipe_history SET at = :moment", moment=2**63 - 1)
    filled.assert_refuses(history=True)


def test_a_limit_of_no_calls_is_none(filled: Filled) -> None:
    filled.store.rate.set_limit(0)
    assert filled.store.rate.acquire().delay < 1


def test_a_batch_is_neither_renamed_nor_given_to_another_key(filled: Filled) -> None:
    place, batch = filled.place, filled.batch
    other = place.store().add_batch("others", {})
    for old, new in ((batch.id, "0" * 24), (other.id, batch.id)):
        place.change("UPDATE sealpipe_batches SET id = :new WHERE id = :old", old=old, new=new)
    with pytest.raises(StateError):
        place.store().find_batch("vendors")
    stranger = make_credential()
    check = KeyWrapper(stranger, batch.id).key_check
    place.change(
        "UPDATE sealpipe_batches SET key_check = :check WHERE id = :id", check=check, id=batch.id
    )
    with pytest.raises(StateError, match="belongs to the API key"):
        place.store(stranger).find_batch("vendors")
    place.change("UPDATE sealpipe_data_keys SET key_id = :id", id=stranger.key_id)
    with pytest.raises(StateError, match=DAMAGE):
        place.store(stranger).find_batch("vendors")


def test_one_damaged_row_does_not_stop_the_others(filled: Filled) -> None:
    damaged = filled.rows[0].id
    filled.place.change(
        "UPDATE sealpipe_rows SET blob = :blob WHERE id = :row", row=damaged, blob=b"x" * 50
    )
    store = filled.place.store()
    store.reconcile([filled.batch])
    row = take(store, filled.batch)
    assert row.id == filled.rows[1].id
    with pytest.raises(StateError, match=DAMAGE):
        store.take_due([filled.batch])
    assert store.take_due([filled.batch]) is None, "it is told once"


def test_numbers_and_text_of_another_type_are_refused(in_sqlite: Place) -> None:
    """SQLite keeps what it is given, whatever the column says."""
    filled = Filled(in_sqlite)
    in_sqlite.change("UPDATE sealpipe_rows SET blob = 'text'")
    filled.assert_refuses(rows=True)
    in_sqlite.change("UPDATE sealpipe_rows SET version = 'text'")
    filled.assert_refuses(rows=True)
    in_sqlite.change("UPDATE sealpipe_batches SET created_at = 'text'")
    with pytest.raises(StateError, match=DAMAGE):
        in_sqlite.store().find_batch("vendors")


def _fill_with_canaries(store: BatchStore) -> tuple[Batch, Row]:
    said = {name: value.decode() for name, value in CANARIES.items()}
    batch = store.add_batch(said["batch"], {"content": said["content"]})
    store.add_rows(batch, [NewRow(said["key"], "new", 1, {"content": said["content"]})])
    row = take(store, batch)
    effect = store.effects.begin(row, said["effect"], {"content": said["effect content"]})
    assert effect is not None
    store.effects.finish(effect, "done", {"content": said["effect content"]})
    store.rate.acquire()
    saved = store.save(
        row, state="sent", due_at=1, content={"c": said["content"]}, events=[{"e": said["event"]}]
    )
    return batch, saved


def test_no_part_of_anything_of_ours_can_be_read(place: Place) -> None:
    store = place.store()
    batch, row = _fill_with_canaries(store)
    credential = place.credential
    assert credential.custody_secret is not None
    secrets = {
        "auth": credential.auth_secret.reveal_bytes(),
        "custody": credential.custody_secret.reveal_bytes(),
    }
    data_keys = []
    for _ in range(2):
        ((id_, _, created_at, wrapped),) = place.database().read(FIND_DATA_KEYS, batch=batch.id)
        key = KeyWrapper(credential, batch.id).unwrap(id_, created_at, wrapped)
        data_keys.append(vars(key)["_key"])
        secrets[f"data key {len(data_keys)}"] = data_keys[-1]
        content = place.read_files()
        assert all(each.encode() in content for each in (batch.id, row.id))
        assert wrapped in content
        assert Detector({**CANARIES, **secrets}).find(content) == set()
        store.rekey(batch)
    assert len({*data_keys}) == 2


def test_no_error_and_no_repr_shows_anything_of_ours(place: Place) -> None:
    store = place.store()
    batch, row = _fill_with_canaries(store)
    assert DETECTOR.find(repr((row, store.effects.list(row), store)).encode()) == set()
    place.change("UPDATE sealpipe_rows SET blob = :blob", blob=b"x" * 50)
    place.change("UPDATE sealpipe_effects SET state = 'failed'")
    for read in (lambda: store.read_row(batch, row.id), lambda: store.effects.list(row)):
        with pytest.raises(StateError) as refused:
            read()
        assert "canary" not in str(refused.value) + refused.value.remedy
        assert refused.value.__cause__ is None


def test_what_is_not_json_is_refused_without_being_shown() -> None:
    sealer = DataKey.create("b" * 24, 1)
    for wrong in (
        {"a": float("nan")},
        {"a": b"bytes-canary-1234"},
        {"a": object()},
        {"a": "\ud800 canary-1234"},
    ):
        with pytest.raises(StateError) as refused:
            sealer.seal(Cell(), wrong)
        error = refused.value
        assert "canary" not in f"{error!r} {error.__cause__!r} {error.__context__!r}"


def test_a_sealed_blob_says_its_length_only_roughly() -> None:
    sealer = DataKey.create("b" * 24, 1)
    lengths = {len(sealer.seal(Cell(), {"key": "x" * number})) for number in range(40)}
    assert len(lengths) == 1
    assert len({sealer.seal(Cell(), {"key": "same"}) for _ in range(10)}) == 10


def test_ids_of_databases_batches_and_credentials_differ() -> None:
    one, two = make_credential(), make_credential()
    ids = {make_batch_id(b"a", "x"), make_batch_id(b"b", "x"), make_batch_id(b"a", "y")}
    rates = {
        make_rate_id(one, "https://a/v1"),
        make_rate_id(one, "https://b/v1"),
        make_rate_id(two, "https://a/v1"),
    }
    assert (len(ids), len(rates)) == (3, 3)


def test_each_generation_of_a_row_has_an_idempotency_key_of_its_own() -> None:
    """They must stay the same in every later version: another one would make a second share."""
    credential, other = (
        Credential.parse(f"svc_sk_live_{'a' * 16}.{'A' * 43}.{'E' * 43}"),
        make_credential(),
    )
    cases = [
        ("share", "v", "acme", 1),
        ("request", "v", "acme", 1),
        ("share", "v", "acme", 2),
        ("share", "va", "cme", 1),
    ]
    keys = [derive_idempotency_key(each, *case) for each in (credential, other) for case in cases]
    assert len(set(keys)) == len(keys)
    assert keys[0] == "6b6c557e-9acd-8256-389c-c7418a7b6c74"


def test_each_generation_of_a_row_has_a_request_key_of_its_own() -> None:
    credential, other = make_credential(), make_credential()
    cases = [
        ("vendors", "acme", 1),
        ("vendors", "acme", 2),
        ("vendors", "acm", 1),
        ("vendor", "sacme", 1),
    ]
    pairs = [derive_request_key(each, *case) for each in (credential, other) for case in cases]
    assert len({pair.public_key for pair in pairs}) == len(pairs)
    assert derive_request_key(credential, *cases[0]) == pairs[0]
    assert not pairs[0].custody
    with pytest.raises(UsageError, match="needs a credential with a custody secret") as refused:
        derive_request_key(make_credential(custody=False), *cases[0])
    assert "create an API key with custody" in refused.value.remedy
