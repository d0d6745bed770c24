"""Several processes at one file: each decision is made once, and a process that is killed holds up
nobody.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sealpipe_service.database.access import InFlightError
from sealpipe_service.database.sqlite import DatabaseFileError, Sqlite
from service.database import racing
from service.database.stores import HOUR, VERIFIER, World, digest
from support.parts import ROOT


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "service.db"


@pytest.fixture
def world(file: Path) -> Iterator[World]:
    world = World(file, lambda: racing.NOW)
    yield world
    world.store.close()


def start(file: Path, what: str, code: str, threads: int = 1) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "service.database.racing", str(file), what, code, str(threads)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    return subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ
    )


def race(file: Path, what: str, code: str, threads: int, processes: int = 4) -> list[object]:
    """What came of it in all threads of all processes, which begin together."""
    started = [start(file, what, code, threads) for _ in range(processes)]
    for each in started:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    for each in started:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    return [result for each in started for result in json.loads(each.communicate(timeout=60)[0])]


def test_fifty_readers_of_a_share_of_one_view_are_one(file: Path, world: World) -> None:
    code = world.share(access_counts_left=1)
    assert Counter(race(file, "opened", code, 13)) == {"opened": 1, "views": 51}
    assert world.counted() == (0, 1)


def test_a_share_of_seven_views_opens_seven_times(file: Path, world: World) -> None:
    code = world.share(access_counts_left=7)
    assert Counter(race(file, "opened", code, 5))["opened"] == 7
    assert sum(world.store.stats("acme")[2].values()) == 7


def test_as_many_wrong_passcodes_are_tried_as_there_are_attempts(file: Path, world: World) -> None:
    code = world.share(passcode_verifier_sha256=digest(VERIFIER))
    assert Counter(race(file, "guessed", code, 5)) == {"passcode": 5, "attempts": 15}


@pytest.mark.parametrize("pair", range(5))
def test_of_two_deletes_of_an_active_request_one_ends_it_and_one_deletes_it(
    file: Path, world: World, pair: int
) -> None:
    code = world.request(title=str(pair))
    assert Counter(race(file, "ended", code, 1, processes=2)) == {"expired": 1, "deleted": 1}


def test_a_share_is_deleted_once(file: Path, world: World) -> None:
    code = world.share()
    assert Counter(race(file, "deleted", code, 4)) == {True: 1, False: 15}


def test_a_request_takes_no_submission_too_many(file: Path, world: World) -> None:
    code = world.request(max_submission=6, expires=racing.NOW + HOUR)
    assert Counter(race(file, "submitted", code, 4)) == {True: 6, False: 10}
    assert len(world.store.submissions(world.request_row(code)["number"])) == 6


def test_a_rate_is_one_for_all_processes(file: Path) -> None:
    assert Counter(race(file, "taken", "k" * 16, 20)) == {True: 60, False: 20}


def test_a_plans_allowance_is_one_for_all_processes(file: Path, world: World) -> None:
    assert Counter(race(file, "allowed", "-", 4)) == {True: 10, "QuotaError": 6}
    assert world.counted() == (10, 0)


def test_one_create_is_done_once_whichever_process_is_asked(file: Path, world: World) -> None:
    done = Counter(race(file, "created", "key", 4))
    del done["in flight"]
    assert len(done) == 1
    assert world.counted() == (1, 0)
    assert world.share("key") in done


def test_all_processes_have_the_time_that_a_rehearsal_sets(file: Path, world: World) -> None:
    code = world.share(expires=racing.NOW + HOUR, access_counts_left=1)
    with closing(Sqlite(file, lambda: racing.NOW)) as other:
        other.run_text("UPDATE clock SET offset_seconds = :by", {"by": HOUR + 1})
    assert world.store.now() == racing.NOW + HOUR + 1
    assert race(file, "opened", code, 1) == ["time"] * 4


def test_a_killed_process_holds_its_key_no_longer(file: Path, world: World) -> None:
    holder = start(file, "held", "key")
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(InFlightError):
        world.share("key")
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    begun = time.monotonic()
    assert world.share("key")
    assert time.monotonic() - begun < 2
    assert [path.name for path in file.parent.glob("*-owner-*")] != []
    world.store.close()
    assert list(file.parent.glob("*-owner-*")) == []  # neither of the killed one nor of this one


def test_another_programs_database_is_left_as_it_is(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE a (b)")
    before = file.read_bytes()
    with pytest.raises(DatabaseFileError, match="another program"):
        Sqlite(file)
    assert file.read_bytes() == before


def test_file_and_journal_are_its_owners_alone_and_keep_no_ciphertext(file: Path) -> None:
    with closing(World(file).store) as store, closing(World(file).store):
        world = World(file)
        code = world.share(access_counts_left=1, data="canary" * 500)
        assert b"canary" in b"".join(path.read_bytes() for path in file.parent.iterdir())
        world.open(code)
        world.clock.pass_by(HOUR)
        world.store.sweep()
        assert {path.stat().st_mode & 0o777 for path in file.parent.iterdir()} == {0o600}
        assert b"canary" not in b"".join(path.read_bytes() for path in file.parent.iterdir())
        assert store.share_at_link(code)[1] == "views"
        world.store.close()
