"""Killed at any system call, a share that is stored, too, is one share whose content is what is stored, or nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cli.also_to.rotating import FILE, Rotating
from sealpipe_rehearsal.running_service import RunningService
from support.strace import HASH_SEED, Point, first, killing, only
from support.sweep import MATTER, Sweep, spread


@pytest.fixture(scope="session")
def calls(service: RunningService, tmp_path_factory: pytest.TempPathFactory) -> list[Point]:
    """The system calls of one that nobody disturbs."""
    return Sweep(service, job=Rotating).points(tmp_path_factory.mktemp("calls"))


@pytest.fixture(scope="session")
def renamed(calls: list[Point]) -> Point:
    """The call that puts the new file in its place."""
    return first(calls, "renameat")


def swept(sweep: Sweep, chosen: list[Point], place: Path) -> None:
    # Some at once: each waits for its own processes most of the time.
    with ThreadPoolExecutor(4) as pool:
        results = pool.map(lambda pair: sweep.kill_at(pair[1], place / str(pair[0])), enumerate(chosen))
        wrong = {str(result.point): told for result in results if (told := result.wrong())}
    assert wrong == {}


@pytest.mark.parametrize("number", ["SIGKILL", "SIGTERM"])
def test_killed_at_any_call_there_is_one_share_of_what_is_stored_or_nothing(
    number: str, service: RunningService, calls: list[Point], tmp_path: Path
) -> None:
    swept(Sweep(service, signal=number, job=Rotating), spread(only(calls, MATTER), 14), tmp_path)


def test_so_it_is_around_the_moment_of_storing(
    service: RunningService, calls: list[Point], renamed: Point, tmp_path: Path
) -> None:
    matter = only(calls, MATTER)
    at = matter.index(renamed)
    swept(Sweep(service, job=Rotating), matter[at - 3 : at + 7], tmp_path)


def test_killed_while_it_stores_resume_may_be_killed_too(
    service: RunningService, calls: list[Point], renamed: Point, tmp_path: Path
) -> None:
    sweep = Sweep(service, resuming=True, job=Rotating, first=first(calls, "fsync", after=renamed))
    swept(sweep, spread(only(sweep.points(tmp_path / "points"), MATTER), 10), tmp_path)


def test_what_is_not_stored_yet_is_listed_and_resume_tells_of_it(
    service: RunningService, renamed: Point, tmp_path: Path
) -> None:
    job = Rotating(tmp_path / "job", service)
    assert job.share(under=killing(renamed, tmp_path / "log"), **HASH_SEED).code == -9
    left = job.resume("--list", "--output", "json").json["entries"][0]["left"]
    assert {"what": "fields", "to": f"dotenv:{FILE}?mode=merge#PW=Password", "state": "not stored"} in left
    done = job.resume()
    assert (done.code, job.opens(done.out)) == (0, True)
    assert f"stored in dotenv:{FILE}\n" in done.err


def test_a_place_that_fails_meanwhile_keeps_the_entry_and_nothing_is_shared(
    service: RunningService, renamed: Point, tmp_path: Path
) -> None:
    job = Rotating(tmp_path / "job", service)
    assert job.share(under=killing(renamed, tmp_path / "log"), **HASH_SEED).code == -9
    for path in job.terminal.here.iterdir():
        path.unlink()
    (job.terminal.here / FILE).mkdir()
    done = job.resume()
    assert (done.code, done.out, job.shares(), len(job.entries())) == (14, "", [], 1), done
    assert "nothing was shared" in done.err
    assert f"sealpipe resume {job.entries()[0]}" in done.err
    (job.terminal.here / FILE).rmdir()
    job.terminal.file(FILE, "OTHER=kept\n")
    done = job.resume()
    assert (done.code, job.opens(done.out), job.left()) == (0, True, [])
