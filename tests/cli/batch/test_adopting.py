"""The database is deleted or restored: requests are found again by their keys, and nothing happens twice."""

from __future__ import annotations

import shutil

import pytest

from cli.batch.test_requests import FILE, ROWS
from cli.batch.test_shares import FILE as SHARES
from cli.batch.world import DAY, BatchWorld
from sealpipe.errors import UsageError


def lose_database(world: BatchWorld) -> None:
    world.store.close()
    shutil.rmtree(world.folder / "state")
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
    assert [(each.key, each.is_blocked) for each in sorted(world.adopt(path))] == [(row["name"], True) for row in ROWS]
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
    world.store.close()
    shutil.copytree(world.folder / "state", world.folder / "backup")
    world.store = world.open_store()
    world.wait(4 * DAY)
    world.run(path)
    assert len(world.loft.messages) == 6, "each was reminded"

    world.store.close()
    shutil.rmtree(world.folder / "state")
    shutil.copytree(world.folder / "backup", world.folder / "state")
    world.store = world.open_store()
    assert {each.key for each in world.adopt(path)} == {row["name"] for row in ROWS}
    for _ in range(2):
        world.run(path)
    assert len(world.loft.messages) == 6
    assert set(world.states(path).values()) == {"blocked"}
    world.wait(4 * DAY)
    world.run(path)
    assert len(world.loft.messages) == 9, "the next reminder is sent"


def test_shares_cannot_be_adopted(world: BatchWorld) -> None:
    path = world.write(SHARES, ROWS)
    with pytest.raises(UsageError, match="nothing at the service says which row"):
        world.adopt(path)
