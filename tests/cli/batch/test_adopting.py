"""The database is deleted or restored: what can be found is found again, and nothing happens
twice.
"""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from cli.batch.pigeons import DOWN
from cli.batch.request_batch import FILE, ROWS
from cli.batch.rounds import make_worker
from cli.batch.share_batch import FILE as SHARES
from cli.batch.share_batch import REMIND
from cli.batch.world import BASE_URL, DAY, BatchWorld
from sealpipe.api.operation import Credential, Operation
from sealpipe.batch.database.opening import open_database, open_store
from sealpipe.batch.database.records import SECOND
from sealpipe.batch.engine.session import adopt, run_batch
from sealpipe.batch.file.reading import read_definition
from sealpipe.errors import StateError


def lose_database(world: BatchWorld) -> None:
    world.store.close()
    shutil.rmtree(world.folder / "state")
    world.store = world.open_store()


def back_up(world: BatchWorld) -> None:
    world.store.close()
    shutil.copytree(world.folder / "state", world.folder / "backup")
    world.store = world.open_store()


def restore(world: BatchWorld) -> None:
    world.store.close()
    shutil.rmtree(world.folder / "state")
    shutil.copytree(world.folder / "backup", world.folder / "state")
    world.store = world.open_store()


def test_a_deleted_database_makes_no_second_request(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS)
    world.run(path)
    lose_database(world)
    result = world.run(path)
    assert result.exit_code == 18
    assert world.states(path) == dict.fromkeys(("acme", "bolt", "core"), "blocked")
    assert "batch remind vendors acme" in world.progress(path, "acme").remedy
    assert (len(world.all_requests()), len(world.loft.messages)) == (3, 3)


def test_adopted_rows_are_collected_and_stored_once(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS)
    world.run(path)
    world.submit(world.code_of("acme.example"), {"Staging password": "s3cret"})
    lose_database(world)
    assert [(each.key, each.is_blocked) for each in sorted(world.adopt(path))] == [
        (row["name"], True) for row in ROWS
    ]
    assert len(world.loft.messages) == 3
    world.wait(DAY)
    world.run(path)
    assert world.states(path)["acme"] == "done"
    world.act(path, "remind", "bolt", "core")
    assert world.states(path) == {"acme": "done", "bolt": "waiting", "core": "waiting"}
    assert world.loft.puts == ["vendors/acme"]


def test_what_was_stored_before_the_loss_is_not_stored_again(world: BatchWorld) -> None:
    path = world.write(FILE.replace('after = "expire"', 'after = "keep"'), ROWS)
    world.run(path)
    world.submit(world.code_of("acme.example"))
    world.wait(DAY)
    world.run(path)
    assert world.loft.puts == ["vendors/acme"]
    lose_database(world)
    world.adopt(path)
    world.wait(DAY)
    world.run(path)
    assert (world.states(path)["acme"], world.loft.puts) == ("done", ["vendors/acme"])


def test_a_later_generation_is_found_too(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS)
    world.run(path)
    world.act(path, "reissue", "bolt")
    codes = set(world.active_requests())
    lose_database(world)
    adopted = {each.key: each for each in world.adopt(path)}
    assert {each.short_code for each in adopted.values()} == codes
    assert (adopted["bolt"].generation, adopted["acme"].generation) == (2, 1)
    assert world.rows(path)["bolt"].generation == 2


def test_a_restored_backup_repeats_no_message_that_may_have_been_sent(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS)
    world.run(path)
    back_up(world)
    world.wait(4 * DAY)
    world.run(path)
    assert len(world.loft.messages) == 6, "each was reminded"

    restore(world)
    assert {each.key for each in world.adopt(path)} == {row["name"] for row in ROWS}
    for _ in range(2):
        world.run(path)
    assert len(world.loft.messages) == 6
    assert set(world.states(path).values()) == {"blocked"}
    world.wait(4 * DAY)
    world.run(path)
    assert len(world.loft.messages) == 9, "the next reminder is sent"


def test_a_request_that_has_ended_is_not_made_again(world: BatchWorld) -> None:
    """The service lists it no more, but knows the idempotency key of its create for a day."""
    path = world.write(FILE, ROWS)
    world.run(path)
    world.submit(world.code_of("acme.example"))
    world.wait(3600)
    world.run(path)
    lose_database(world)
    world.run(path)
    progress = world.progress(path, "acme")
    assert "created within the last 24 hours, and has ended" in progress.problem
    assert "batch reissue vendors acme" in progress.remedy
    assert (len(world.all_requests()), len(world.loft.messages)) == (3, 3)


def test_a_later_generation_of_a_row_that_was_over_is_found(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS[:1])
    world.run(path)
    world.act(path, "cancel", "acme")
    back_up(world)
    world.act(path, "reissue", "acme")
    world.submit(world.code_of("acme.example"))
    restore(world)
    (adopted,) = world.adopt(path)
    assert (adopted.generation, adopted.short_code) == (2, world.code_of("acme.example"))
    world.wait(DAY)
    world.run(path)
    assert (world.states(path), world.loft.puts) == ({"acme": "done"}, ["vendors/acme"])


def test_a_later_generation_is_what_the_file_says_now(world: BatchWorld) -> None:
    """Its row in the backup is of the generation before, which the file described differently."""
    path = world.write(FILE, ROWS[:1])
    world.run(path)
    back_up(world)
    world.write(FILE.replace('"Access to {system}"', '"Login for {system}"'))
    world.run(path)
    world.act(path, "reissue", "acme")
    restore(world)
    (adopted,) = world.adopt(path)
    assert adopted.generation == 2
    world.act(path, "remind", "acme")
    assert world.messages("acme.example")[-1].subject.endswith(": Login for CRM")


def test_what_is_adopted_under_a_rotated_key_is_opened_without_the_old_one(
    world: BatchWorld,
) -> None:
    path = world.write(FILE, ROWS[:1])
    world.run(path)
    old = world.rotate()
    lose_database(world)
    (adopted,) = adopt(world.session(old), world.store, read_definition(path))
    assert adopted.short_code == world.code_of("acme.example")
    world.submit(adopted.short_code, {"Staging password": "s3cret"})
    world.wait(DAY)
    world.run(path)
    assert world.states(path) == {"acme": "done"}, world.progress(path, "acme")
    assert world.loft.values["vendors/acme"]["password"] == "s3cret"


def test_for_a_day_a_restored_backup_makes_no_second_share(world: BatchWorld) -> None:
    path = world.write(SHARES, ROWS)
    world.run(path, only=["acme"])
    back_up(world)
    world.run(path)
    restore(world)
    for _ in range(3):
        world.wait(3600)
        assert world.run(path).exit_code == 18
    assert world.states(path) == {"acme": "done", "bolt": "blocked", "core": "blocked"}
    assert (
        "a share of this row was created within the last 24 hours"
        in world.progress(path, "bolt").problem
    )
    assert (len(world.all_shares()), len(world.loft.messages)) == (3, 3)
    world.act(path, "reissue", "bolt")
    assert (world.states(path)["bolt"], len(world.messages("bolt.example"))) == ("done", 2)


def test_adopted_shares_are_blocked_where_nothing_is_known(world: BatchWorld) -> None:
    path = world.write(SHARES + REMIND, ROWS)
    world.run(path, only=["acme"])
    back_up(world)
    world.wait(3 * DAY)
    world.run(path)
    assert len(world.messages("acme.example")) == 2, "it was reminded"
    restore(world)
    adopted = world.adopt(path)
    assert {each.key: bool(each.short_code) for each in adopted} == {
        "acme": True,
        "bolt": False,
        "core": False,
    }
    assert all(each.is_blocked for each in adopted)
    world.wait(DAY)
    world.write(SHARES + REMIND, ROWS[:1])
    world.run(path)
    world.write(SHARES + REMIND, ROWS)
    world.run(path)
    assert (len(world.all_shares()), len(world.loft.messages)) == (3, 4), (
        "also after a row was gone for a while"
    )
    world.act(path, "reissue", "bolt")
    assert (len(world.all_shares()), world.states(path)["bolt"]) == (4, "waiting")


@pytest.fixture
def marked(world: BatchWorld) -> BatchWorld:
    """A machine that notes how far it has seen each batch, where no backup of the database is
    restored.
    """
    world.store.marks_folder = world.folder / "marks"
    return world


def test_a_database_older_than_what_the_machine_saw_is_refused_until_adopted(
    marked: BatchWorld,
) -> None:
    world, marks = marked, marked.store.marks_folder
    path = world.write(FILE, ROWS)
    world.loft.down["acme.example"] = DOWN
    world.run(path)
    back_up(world)
    world.loft.down.clear()
    world.store.marks_folder = marks
    world.run(path)
    assert len(world.messages("acme.example")) == 1
    restore(world)
    world.store.marks_folder = marks
    world.wait(3600)
    works = (
        lambda: world.run(path),
        lambda: world.act(path, "remind", "acme"),
        lambda: make_worker(world)._run_round(None, must_lock=True),
    )
    for work in works:
        with pytest.raises(
            StateError, match="restored from a backup, and messages may have been sent since"
        ):
            work()
    world.adopt(path)
    world.run(path)
    assert (world.states(path)["acme"], len(world.messages("acme.example"))) == ("blocked", 1)


def test_a_batch_that_was_purged_and_begins_anew_is_not_older(marked: BatchWorld) -> None:
    world = marked
    path = world.write(FILE, ROWS)
    world.run(path)
    world.act(path, "cancel")
    batch = world.store.find_batch("vendors")
    assert batch is not None
    world.store.purge_batch(batch)
    world.wait(2 * DAY)
    assert world.run(path).counts == {"waiting": 3}


def test_a_backup_from_before_a_batch_was_purged_can_be_adopted(marked: BatchWorld) -> None:
    world, marks = marked, marked.store.marks_folder
    path = world.write(FILE, ROWS)
    world.run(path)
    back_up(world)
    world.act(path, "cancel")
    world.store.purge_batch(world.engine(path).batch)
    world.wait(2 * DAY)
    world.store.marks_folder = marks
    world.run(path)
    restore(world)
    world.store.marks_folder = marks
    with pytest.raises(StateError, match="restored from a backup"):
        world.run(path)
    world.adopt(path)
    assert world.run(path).counts == {"blocked": 3}


@pytest.mark.parametrize("file", [FILE, SHARES], ids=["request", "share"])
def test_two_databases_of_one_batch_make_one_of_each_row(world: BatchWorld, file: str) -> None:
    """The second one creates its row when the first has listed what there is, and is about to
    create.
    """
    path = world.write(file, ROWS[:1])
    other = open_store(
        open_database(world.folder / "other"), Credential.parse(world.api_key), BASE_URL
    )
    other.clock_offset = 5 * SECOND
    session = world.session()
    posted: list[str] = []

    def be_faster(operation: Operation[Any]) -> None:
        if operation.method == "POST" and not posted:
            posted.append(operation.path)
            run_batch(session, other, read_definition(path), threads=1)

    world.before = be_faster  # type: ignore[method-assign]
    world.run(path)
    other.close()
    assert (world.states(path), len(world.messages("acme.example"))) == ({"acme": "blocked"}, 1)
    assert len(world.all_requests() + world.all_shares()) == 1
