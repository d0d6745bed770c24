"""Signals at the worst moments: after `sealpipe resume` there is exactly one share, and its link.

Kills at every step: tests/cli/kills.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.faults.conftest import Lost
from support import faults
from support.faults import envelope
from support.faulty import Exchange, Fault, Faulty, passes, same_bytes
from support.job import Job, ended, full_pipe

SIGNALS = {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGKILL: -9}
PATIENCE = 30


@pytest.fixture(params=SIGNALS, ids=lambda number: number.name)
def number(request: pytest.FixtureRequest) -> signal.Signals:
    chosen: signal.Signals = request.param
    return chosen


def assert_resume_gives_the_link(job: Job, *, shares: int = 1) -> None:
    done = job.resume()
    assert done.code == 0, done
    assert done.out.count("\n") == 1
    assert len(job.shares()) == shares
    assert job.opens(done.out)
    assert job.left() == []


def assert_told(number: signal.Signals, job: Job, err: str) -> None:
    """Who can still speak names the entry."""
    if number != signal.SIGKILL:
        (entry,) = job.entries()
        assert f"sealpipe resume {entry}" in err
        assert "Traceback" not in err


@pytest.mark.parametrize(
    ("fault", "shares"),
    [(faults.holds, 1), (faults.holds_before, 0)],
    ids=["after the commit", "before the commit"],
)
def test_a_share_killed_while_its_answer_is_awaited_is_finished_by_resume(
    fault: Fault,
    shares: int,
    number: signal.Signals,
    proxied: Callable[..., Faulty],
    job_at: Callable[..., Job],
) -> None:
    server = proxied(fault)
    job = job_at(server)
    process = job.start()
    assert server.committed.wait(PATIENCE)
    # A signal in the instant before Python begins to wait is noticed when that waiting ends.
    time.sleep(0.1)
    process.send_signal(number)
    done = ended(process)
    assert (done.code, done.out) == (SIGNALS[number], "")
    assert_told(number, job, done.err)
    assert len(job.shares()) == shares
    server.mend()
    assert_resume_gives_the_link(job)
    assert len(server.received()) == 2
    assert same_bytes(server.received())


def test_a_share_killed_between_two_tries_is_finished_by_resume(
    number: signal.Signals, proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    def lost_then_wait(exchange: Exchange) -> None:
        exchange.forward()
        envelope(429, 107, {"Retry-After": "20"})(exchange)
        exchange.server.committed.set()

    server = proxied(faults.reset_after, lost_then_wait)
    job = job_at(server)
    process = job.start()
    assert server.committed.wait(PATIENCE)
    time.sleep(0.3)
    process.send_signal(number)
    done = ended(process)
    assert (done.code, done.out) == (SIGNALS[number], "")
    assert_told(number, job, done.err)
    assert_resume_gives_the_link(job)
    assert same_bytes(server.received())


def test_a_share_killed_after_its_answer_and_before_its_output_tells_its_link_without_the_service(
    number: signal.Signals, proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied()
    job = job_at(server)
    reading, writing, filled = full_pipe()
    try:
        process = job.start(stdout=writing)
        assert process.stderr is not None
        assert process.stderr.readline().startswith(b"created ")
        wait_until_blocked(process)
        process.send_signal(number)
        done = ended(process)
        os.close(writing)
        writing = -1
        assert done.code == SIGNALS[number]
        assert_told(number, job, done.err)
        with os.fdopen(reading, "rb") as pipe:
            reading = -1
            assert pipe.read() == b"\0" * filled
    finally:
        for descriptor in (reading, writing):
            if descriptor >= 0:
                os.close(descriptor)
    server.refuse()
    assert_resume_gives_the_link(job)
    assert len(server.received()) == 1


def wait_until_blocked(process: subprocess.Popen[bytes]) -> None:
    """Until it sleeps: in the write to its full stdout."""
    stat = Path(f"/proc/{process.pid}/stat")
    if not stat.exists():
        time.sleep(0.5)
        return
    end = time.monotonic() + PATIENCE
    while stat.read_text().rpartition(")")[2].split()[0] != "S":
        assert time.monotonic() < end
        time.sleep(0.01)


def test_killed_again_and_again_it_is_still_one_share(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(then=faults.holds)
    job = job_at(server)
    for command in (("share", "-f", "env:DB_PASSWORD"), ("resume",), ("resume",)):
        server.plan(then=faults.holds)
        process = job.start(*command)
        assert server.committed.wait(PATIENCE)
        process.kill()
        done = ended(process)
        assert (done.code, done.out) == (-9, "")
    server.mend()
    assert_resume_gives_the_link(job)
    assert len(server.received()) == 4
    assert same_bytes(server.received())


def test_two_lost_shares_are_two_links(lost: Lost) -> None:
    job, server = lost()
    server.plan(faults.reset_after, then=faults.unauthorized)
    assert job.share().code == 9
    server.mend()
    done = job.resume()
    assert done.code == 0
    links = done.out.splitlines()
    assert len(set(links)) == len(links) == len(job.shares()) == 2
    assert all(job.opens(link) for link in links)


def test_a_terminated_share_whose_key_has_no_custody_is_finished_as_it_was_begun(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(passes, faults.holds)
    job = job_at(server, custody="none")
    process = job.start()
    assert server.committed.wait(PATIENCE)
    process.terminate()
    assert ended(process).code == 143
    server.mend()
    assert_resume_gives_the_link(job)
    assert same_bytes(server.received()[1:])


def test_a_required_custody_that_failed_is_taken_back_by_resume_after_a_kill(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    """Killed between the DELETE and its answer: the share is gone already, and that is what was
    wanted.
    """
    server = proxied(passes, faults.holds)
    job = job_at(server)
    job.service.set_account(job.account, zero_knowledge_enrolled=False)
    process = job.start("share", "-f", "env:DB_PASSWORD", "--custody", "require")
    assert server.committed.wait(PATIENCE)
    process.kill()
    ended(process)
    assert len(job.entries()) == 1
    server.mend()
    done = job.resume()
    assert (done.code, done.out) == (4, ""), done
    assert job.live_shares() == []
    assert job.left() == []
