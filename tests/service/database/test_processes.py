"""Several processes at one database: each decision is made once, and a process that is killed
holds up nobody.
"""

from __future__ import annotations

import signal
import time
from collections import Counter

import psycopg
import pytest

from sealpipe_service.database.access import InFlightError, number_of
from sealpipe_service.database.decisions import OtherBodyError
from service.database.processes import race, start
from service.database.stores import HOUR, NOON, VERIFIER, World, digest, run_text
from support.clusters import Cluster


def test_fifty_readers_of_a_share_of_one_view_are_one(address: str, shared: World) -> None:
    code = shared.share(access_counts_left=1)
    assert Counter(race(address, "opened", code, 13)) == {"opened": 1, "views": 51}
    assert shared.counted() == (0, 1)


def test_a_share_of_seven_views_opens_seven_times(address: str, shared: World) -> None:
    code = shared.share(access_counts_left=7)
    assert Counter(race(address, "opened", code, 5))["opened"] == 7
    assert sum(shared.store.stats("acme")[2].values()) == 7


def test_as_many_wrong_passcodes_are_tried_as_there_are_attempts(
    address: str, shared: World
) -> None:
    code = shared.share(passcode_verifier_sha256=digest(VERIFIER))
    assert Counter(race(address, "guessed", code, 5)) == {"passcode": 5, "attempts": 15}


def test_of_two_deletes_of_an_active_request_one_ends_it_and_one_deletes_it(
    address: str, shared: World
) -> None:
    codes = [shared.request(title=str(pair)) for pair in range(20)]
    done = race(address, "ended", " ".join(codes), 20, processes=2)
    pairs = zip(done[:20], done[20:], strict=True)
    assert [sorted(map(str, pair)) for pair in pairs] == [["deleted", "expired"]] * 20


def test_a_share_is_deleted_once(address: str, shared: World) -> None:
    code = shared.share()
    assert Counter(race(address, "deleted", code, 4)) == {True: 1, False: 15}


def test_a_request_takes_no_submission_too_many(address: str, shared: World) -> None:
    code = shared.request(max_submission=6, expires=NOON + HOUR)
    assert Counter(race(address, "submitted", code, 4)) == {True: 6, False: 10}
    assert len(shared.store.submissions(shared.request_row(code)["number"])) == 6


def test_a_rate_is_one_for_all_processes(address: str) -> None:
    assert Counter(race(address, "taken", "k" * 16, 20)) == {True: 60, False: 20}


def test_a_plans_allowance_is_one_for_all_processes(address: str, shared: World) -> None:
    assert Counter(race(address, "allowed", "-", 4)) == {True: 10, "QuotaError": 6}
    assert shared.counted() == (10, 0)


def test_an_allowance_of_keys_is_one_for_all_processes(address: str, shared: World) -> None:
    assert Counter(race(address, "keyed", "-", 4)) == {True: 2, "QuotaError": 14}
    assert len(shared.store.list_keys()) == 2


def test_no_change_of_a_plan_is_lost(address: str, shared: World) -> None:
    race(address, "planned", "-", 4)
    plan = shared.store.account("acme")
    assert plan is not None
    assert plan["plan"] == "business" + "+" * 16


def test_what_has_expired_is_ended_and_told_of_once(address: str, shared: World) -> None:
    for number in range(60):
        shared.share(space=f"space {number % 3}", expires=NOON + number)
        shared.request(space=f"space {number % 3}", expires=NOON + number)
    run_text(address, "UPDATE clock SET offset_seconds = 3600")
    assert sum(int(str(each)) for each in race(address, "swept", "-", 4)) == 60
    assert [shared.store.stats(f"space {number}")[:2] for number in range(3)] == [(0, 20)] * 3


def test_one_create_is_done_once_whichever_process_is_asked(address: str, shared: World) -> None:
    done = Counter(race(address, "created", "key", 4))
    del done["in flight"]
    assert len(done) == 1
    assert shared.counted() == (1, 0)
    assert shared.share("key") in done


def test_all_processes_have_the_time_that_a_rehearsal_sets(address: str, shared: World) -> None:
    code = shared.share(expires=NOON + HOUR, access_counts_left=1)
    run_text(address, "UPDATE clock SET offset_seconds = 3601")
    assert shared.store.now() == NOON + 3601
    assert race(address, "opened", code, 1) == ["time"] * 4


def test_what_a_create_has_committed_is_replayed_before_all_its_locks_are_free(
    cluster: Cluster,
) -> None:
    address = cluster.address()
    world = World(address)
    code = world.share("key")
    with psycopg.connect(address) as ending:
        any_body = number_of("create", "k" * 16, "key")
        ending.execute("SELECT pg_advisory_xact_lock(%s)", [any_body])
        assert world.share("key") == code
        with pytest.raises(OtherBodyError), world.store.claim("k" * 16, "key", digest("other")):
            pass
    world.store.close()


def test_a_killed_process_holds_its_key_no_longer(address: str, shared: World) -> None:
    holder = start(address, "held", "key")
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(InFlightError):
        shared.share("key")
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    begun = time.monotonic()
    while True:
        try:
            shared.share("key")
            break
        except InFlightError:  # the database has not heard of its end yet
            assert time.monotonic() - begun < 2
            time.sleep(0.01)
    assert shared.counted() == (1, 0)
