"""A clock that was ahead is corrected: what was written meanwhile neither revives nor blocks."""

from __future__ import annotations

import pytest

from service.database.stores import HOUR, PLAN, World

DAY = 24 * HOUR


def plan_of(world: World) -> object:
    caller = world.store.caller("k" * 16)
    assert caller is not None
    return caller["account_plan"]


def change_plan(world: World, plan: str, *, at_once: bool = False) -> None:
    world.store.change_account("acme", PLAN, lambda row: {**row, "plan": plan}, at_once=at_once)


@pytest.mark.parametrize("back", [5, 45, HOUR, DAY])
def test_an_account_without_access_gets_none_by_it(world: World, back: float) -> None:
    world.key()
    change_plan(world, "none", at_once=True)
    world.clock.pass_by(-back)
    assert plan_of(world) == "none"


@pytest.mark.parametrize("back", [HOUR, DAY])
def test_a_change_that_was_seen_or_soon_would_be_stays(world: World, back: float) -> None:
    world.key()
    change_plan(world, "enterprise", at_once=True)
    world.clock.pass_by(HOUR)
    change_plan(world, "none")
    world.clock.pass_by(-back)
    assert plan_of(world) == "none"
    change_plan(world, "business")
    assert plan_of(world) == "none"
    world.clock.pass_by(30)
    assert plan_of(world) == "business"


def test_an_empty_bucket_refills_by_the_new_time(world: World) -> None:
    def take() -> int:
        return world.store.take("k" * 16, 60, world.clock.now)

    assert [take() for _ in range(121)] == [0] * 120 + [1]
    world.clock.pass_by(-DAY)
    assert take() == 1
    world.clock.pass_by(1)
    assert [take(), take()] == [0, 1]


def test_a_share_that_was_swept_has_ended_and_its_ciphertext_goes(world: World) -> None:
    seen = world.share(access_counts_left=1)
    late = world.share(expires=world.clock.now + DAY)
    world.clock.pass_by(DAY)
    world.open(seen)
    world.store.sweep()
    world.clock.pass_by(-DAY)
    assert [world.open(code).reason for code in (seen, late)] == ["views", "time"]
    world.store.sweep()
    assert not world.has_ciphertext(seen)


def test_a_lease_of_a_killed_process_ends(world: World) -> None:
    world.store.change_account("acme", PLAN, dict, at_once=True)
    endpoint = dict.fromkeys(("previous_secret", "rotated_at"))
    endpoint |= {"id": "wh", "account": "acme", "url": "https://h", "secret": "s"}
    world.store.add_webhook("acme", lambda now: {**endpoint, "created_at": now}, lambda _: 1)
    for _ in range(2):
        assert world.delete(world.share())
    world.clock.pass_by(DAY)
    leased = world.store.lease_delivery()
    assert leased is not None
    assert world.store.lease_delivery() is None
    world.clock.pass_by(-DAY)
    assert world.store.next_delivery() == 0
    assert world.store.lease_delivery() is not None
