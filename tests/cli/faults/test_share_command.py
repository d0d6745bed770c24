"""`sealpipe share` over a real socket at which something goes wrong: one share, one link, the
promised exit code.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli.faults.ahead import WAITS_FOR_ALL
from cli.faults.conftest import Lost
from cli.faults.resuming import assert_finished_by_resume
from cli.faults.table import LATE, ROWS, Row
from sealpipe.budget import Budget
from sealpipe_rehearsal.running_service import RunningService
from sealpipe_rehearsal.server import start
from support import faults
from support.faults import says
from support.faulty import Exchange, Faulty, Received, same_bytes
from support.job import Job
from support.ports import silent_port
from support.terminal import Done


@dataclass(frozen=True)
class State:
    """What there is once a command has ended."""

    done: Done
    entries: list[str]
    left: list[str]
    shares: list[str]
    requests: list[Received]


@dataclass(frozen=True)
class Outcome:
    """One row of the table, done: the share, then (where an entry was kept) `sealpipe resume`
    without the fault.
    """

    job: Job
    shared: State
    seconds: float
    resumed: State | None


def carry_out(row: Row, place: Path, service: RunningService) -> Outcome:
    with Faulty(service.address, *row.faults, then=row.then) as server:
        if not row.listens:
            server.refuse()
        job = Job(place, service, server.base_url)
        began = time.monotonic()
        done = job.share("--deadline", f"{row.deadline:.0f}s")
        seconds = time.monotonic() - began
        shared = _state(done, job, server)
        if not shared.entries:
            return Outcome(job, shared, seconds, None)
        server.mend()
        return Outcome(job, shared, seconds, _state(job.resume(), job, server))


def _state(done: Done, job: Job, server: Faulty) -> State:
    return State(done, job.entries(), job.left(), job.shares(), server.received())


@WAITS_FOR_ALL
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_fault_ends_as_promised_and_resume_makes_exactly_one_share_of_it(
    row: Row, outcomes: dict[str, Future[Outcome]]
) -> None:
    outcome = outcomes[str(row)].result()
    job, shared = outcome.job, outcome.shared
    assert shared.done.code == row.code, shared.done
    assert "Traceback" not in shared.done.err
    assert len(shared.shares) == row.shares
    assert row.sent[0] <= len(shared.requests) <= row.sent[1]
    assert same_bytes(shared.requests)
    assert outcome.seconds < row.deadline + LATE

    if row.ends is None:
        assert_one_link(job, shared)
        assert outcome.resumed is None
        return
    assert shared.done.out == ""
    assert len(shared.entries) == int(row.kept)
    if not row.kept:
        assert shared.left == []
        assert "sealpipe resume" not in shared.done.err
        return
    assert f"sealpipe resume {shared.entries[0]}" in shared.done.err
    assert outcome.resumed is not None
    assert_one_link(job, outcome.resumed)
    # Whatever was sent, first and last, is one request.
    assert same_bytes(outcome.resumed.requests)
    assert len(outcome.resumed.requests) == len(shared.requests) + 1


def assert_one_link(job: Job, state: State) -> None:
    assert state.done.code == 0, state.done
    assert len(state.shares) == 1
    assert state.done.out.count("\n") == 1
    assert state.done.out.endswith("\n")
    assert state.done.out.startswith(f"{job.service.link_base_url}/{state.shares[0]}#1")
    assert state.left == []
    assert job.opens(state.done.out)


def test_a_request_holds_what_the_service_wants_and_not_the_custody_secret(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied()
    job = job_at(server)
    assert job.share().code == 0
    (request,) = server.received()
    sent, _, custody_secret = job.api_key.rpartition(".")
    assert (request.method, request.target) == ("POST", "/v1/shares")
    assert request.header("authorization") == f"Bearer {sent}"
    assert request.header("content-type") == "application/json"
    assert request.header("accept-encoding") == "identity"
    assert len(request.header("idempotency-key") or "") >= 16
    assert custody_secret.encode() not in request.head + request.body


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_nothing_is_sent_to_where_a_redirect_points(
    status: int, proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    other = proxied()
    location = f"http://localhost:{other.port}/v1/shares"
    server = proxied(then=says(status, "", {"Location": location}))
    job = job_at(server)
    done = job.share()
    assert (done.code, done.out) == (12, "")
    assert len(server.received()) == 1
    assert other.connections == 0


def test_a_refused_connection_is_retried_until_it_succeeds(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    # In all far longer than it takes to listen again.
    monkeypatch.setattr(Budget, "draw_backoff", lambda *_: 1.0)
    server = proxied()
    server.refuse()
    job = job_at(server)
    late = threading.Timer(0.5, server.mend)
    late.start()
    done = job.share()
    late.join()
    assert done.code == 0, done
    assert len(job.shares()) == len(server.received()) == 1
    assert job.opens(done.out)
    assert job.left() == []


def test_a_resend_while_the_first_one_is_still_in_flight_gets_106_and_then_the_replay(
    tmp_path: Path,
) -> None:
    """The service's own 106: the connection breaks while the first create is being carried out."""
    going_on = threading.Event()
    begun = threading.Event()

    def at(moment: str) -> None:
        if moment == "shares.begun":
            begun.set()
            going_on.wait(30)

    def abandons(exchange: Exchange) -> None:
        threading.Thread(target=exchange.forward, daemon=True).start()
        begun.wait(30)
        exchange.reset()

    answers: list[int] = []

    def passes_and_goes_on(exchange: Exchange) -> None:
        answer = exchange.forward()
        answers.append(answer.status)
        going_on.set()
        exchange.send(answer.head + answer.body)

    with (
        start(on_moment=at) as slow,
        Faulty(slow.address, abandons, then=passes_and_goes_on) as server,
    ):
        job = Job(tmp_path, slow, server.base_url)
        done = job.share()
        assert done.code == 0, done
        assert answers[0] == 409
        assert answers[-1] == 200
        assert len(job.shares()) == 1
        assert same_bytes(server.received())
        assert job.opens(done.out)


@pytest.mark.parametrize("words", [(), ("--output", "json")], ids=["text", "json"])
def test_a_lost_outcome_names_the_entry_and_the_command_that_finishes_it(
    words: tuple[str, ...], proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(faults.reset_after, then=faults.unauthorized)
    job = job_at(server)
    done = job.share(*words)
    (entry,) = job.entries()
    assert (done.code, done.out) == (9, "")
    if words:
        told = json.loads(done.err.splitlines()[-1])["error"]
        assert (told["exit_code"], told["outbox_id"], told["type"]) == (
            9,
            entry,
            "OutcomeUnknownError",
        )
        assert f"sealpipe resume {entry}" in told["remedy"]
    else:
        assert f"sealpipe resume {entry}" in done.err


def test_resume_that_fails_again_keeps_the_entry_until_it_succeeds(lost: Lost) -> None:
    job, server = lost()
    entries = job.entries()
    server.refuse()
    done = job.resume("--deadline", "30s")
    # Nothing was sent this time; but that the first sending was not carried out is not known.
    assert (done.code, done.out) == (9, "")
    server.listen()
    for fault in (faults.unauthorized, faults.says(503), faults.envelope(429, 107)):
        server.plan(then=fault)
        done = job.resume("--deadline", "2s")  # whatever comes within it
        assert (done.code, done.out) == (9, "")
        assert job.entries() == entries
    server.mend()
    assert_finished_by_resume(job)
    assert same_bytes(server.received())
    assert "nothing to resume" in job.resume().err


def test_a_large_share_that_is_refused_before_it_has_arrived_is_refused(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(then=says(413))
    job = job_at(server)
    large = job.terminal.file("large.txt", "x" * (12 * 1024 * 1024))
    done = job.run("share", "-f", f"file:{large}")
    assert (done.code, done.out) == (5, "")
    assert job.left() == []


def test_a_large_share_whose_connection_is_reset_on_the_way_is_sent_again_whole(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(faults.reset_after)
    job = job_at(server)
    large = job.terminal.file("large.txt", job.secret * 100_000)
    done = job.run("share", "-f", f"Large=file:{large}")
    assert done.code == 0, done
    first, second = server.received()
    assert same_bytes([first, second])
    assert len(first.body) > 5_000_000
    assert len(job.shares()) == 1
    (field,) = job.service.recipient().open_link(done.out.strip())
    assert (
        field.value if isinstance(field.value, str) else field.value.reveal()
    ) == job.secret * 100_000


def test_an_answer_without_an_expiry_says_nothing_of_it_and_neither_do_we(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    """null is "never", by the specification; a member that is missing is not."""
    job = job_at(proxied(then=faults.rewrites(expired_at=...)))
    told = "the service did not say when it expires"
    done = job.share()
    assert (done.code, told in done.err, "does not expire" in done.err) == (0, True, False)
    done = job.share("--output", "json")
    assert (done.json["expires_at"], done.json["expiry_known"]) == (None, False)
    job.terminal.file("text", "{link} {expires}")
    assert job.share("--send", "file:message", "--message-template", "text").code == 0
    (code, *_) = job.shares()
    shown = job.run("shares", "show", "--", code)
    assert shown.out == f"{code}\t{told}\tnot expired\t-\t-\n"
    assert job.run("shares", "show", "--output", "json", "--", code).json["expiry_known"] is False


def test_null_for_an_expiry_is_never(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    job = job_at(proxied(then=faults.rewrites(expired_at=None)))
    done = job.share("--output", "json")
    assert (
        done.json["expires_at"],
        "expiry_known" in done.json,
        "does not expire" in done.err,
    ) == (None, False, True)


def test_resume_also_reports_an_unknown_expiry(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    job = job_at(proxied(then=faults.rewrites(expired_at=...)))
    job.service.set_account(job.account, zero_knowledge_enrolled=False)
    assert (
        job.share(
            "--send",
            f"webhook:http://127.0.0.1:{silent_port()}/",
            SEALPIPE_PLUGIN_WEBHOOK__SECRET="s" * 16,
        ).code
        == 11
    )
    done = job.resume()
    assert done.code == 11
    assert "the service did not say when it expires" in done.err
    assert "custody failed: " in done.err
