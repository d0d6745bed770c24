"""Rule D over real sockets: the DELETEs that arrive are counted, and what was submitted is never
gone.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sealpipe import (
    AsyncClient,
    Client,
    DeliveryError,
    NotFoundError,
    OutcomeUnknownError,
    StateError,
    UsageError,
    errors,
)
from sealpipe.budget import Budget
from sealpipe.expire import request as expiring
from sealpipe.parsing import format_time
from sealpipe.state.ledger import Ledger, PendingDelete
from support import faults
from support.faults import envelope, rewrites, says
from support.faulty import Exchange, Fault, passes
from support.job import Caller, Job, Proxied, client_of, deletes, ended, made, once, submitted

CallAt = Callable[[str], Caller]
PATIENCE = 30


def on_delete(fault: Fault) -> Fault:
    """The fault for DELETEs; everything else passes."""

    def only(exchange: Exchange) -> None:
        (fault if exchange.received.method == "DELETE" else passes)(exchange)

    return only


def submits(job: Job, code: str, value: str = "late") -> Fault:
    """Somebody submits while the DELETE is on its way."""

    def fault(exchange: Exchange) -> None:
        submitted(job, code, value)
        passes(exchange)

    return fault


def undated(exchange: Exchange) -> None:
    """The service's answer without its clock."""
    answer = exchange.forward()
    head = [line for line in answer.head.split(b"\r\n") if not line.lower().startswith(b"date:")]
    exchange.send(b"\r\n".join(head) + answer.body)


def still_there(job: Job, code: str) -> list[str | None]:
    """The submissions that the service has."""
    with client_of(job) as client:
        return [row.short_code for row in client.list_submissions(code).items]


def active(job: Job, code: str) -> bool:
    with client_of(job) as client:
        return client.get_request(code).expires_at is not None


def kept(folder: Path) -> list[str]:
    """The codes of the submissions that are kept."""
    lines = [
        json.loads(line)
        for path in sorted(folder.glob("*"))
        for line in path.read_text().splitlines()
    ]
    return [line["submission"]["short_code"] for line in lines if "submission" in line]


def test_an_active_request_expires_and_everything_submitted_stays_and_is_kept(
    proxied: Proxied, call_at: CallAt, job: Job, tmp_path: Path
) -> None:
    server, code = proxied(), made(job)
    codes = submitted(job, code, "one", "two")
    done = call_at(server.base_url)("expire_request", code, keep=tmp_path / "kept")
    assert (done.short_code, done.outcome, done.late, done.skipped) == (code, "expired", 0, 0)
    assert (
        [row.short_code for row in done.submissions]
        == codes
        == still_there(job, code)
        == kept(tmp_path / "kept")
    )
    assert deletes(server) == 1
    assert done.kept_in.stat().st_mode & 0o777 == 0o600
    assert done.kept_in.parent.stat().st_mode & 0o777 == 0o700


def test_expiring_again_sends_no_delete_and_keeps_nothing_twice(
    proxied: Proxied, call_at: CallAt, job: Job, tmp_path: Path
) -> None:
    server, code = proxied(), made(job)
    codes = submitted(job, code, "one")
    caller = call_at(server.base_url)
    outcomes = [caller("expire_request", code, keep=tmp_path / "kept").outcome for _ in range(3)]
    assert outcomes == ["expired", "already-expired", "already-expired"]
    assert deletes(server) == 1
    assert kept(tmp_path / "kept") == codes


def test_the_delete_goes_over_a_connection_of_its_own(
    proxied: Proxied, call_at: CallAt, job: Job
) -> None:
    server = proxied()
    call_at(server.base_url)("expire_request", made(job))
    assert server.connections == 2
    closing = [
        request.method for request in server.received() if request.header("connection") == "close"
    ]
    assert closing == ["DELETE"]


def test_without_a_folder_nothing_is_written_and_the_submissions_are_in_the_result(
    call: Caller, job: Job, tmp_path: Path
) -> None:
    before = sorted(tmp_path.rglob("*"))
    code = made(job)
    codes = submitted(job, code, "one")
    done = call("expire_request", code)
    assert ([row.short_code for row in done.submissions], done.kept_in) == (codes, None)
    assert sorted(tmp_path.rglob("*")) == before


def test_what_is_submitted_while_the_delete_is_on_its_way_is_kept_too(
    proxied: Proxied, call_at: CallAt, job: Job, tmp_path: Path
) -> None:
    code = made(job)
    submitted(job, code, "early")
    server = proxied(then=on_delete(submits(job, code)))
    done = call_at(server.base_url)("expire_request", code, keep=tmp_path / "kept")
    assert (done.outcome, done.late, len(done.submissions)) == ("expired", 1, 2)
    assert kept(tmp_path / "kept") == still_there(job, code)


UNCLEAR = {
    "a reset after it was carried out": faults.reset_after,
    "half a body": faults.half_body,
    "half a head": faults.half_head,
    "closed without an answer": faults.closes_after,
    "500/11 though it was carried out": envelope(500, 11, commits=True),
    "502 in HTML though it was carried out": says(502, "<html>", commits=True),
    "an outcome that is none": rewrites(outcome="ended"),
    "another short code": rewrites(short_code="other"),
    "a redirect though it was carried out": says(307, "", {"Location": "/v2"}, commits=True),
}


@pytest.mark.parametrize("fault", UNCLEAR.values(), ids=UNCLEAR)
def test_on_doubt_it_only_looks_and_learns_that_it_has_expired(
    fault: Fault, proxied: Proxied, call_at: CallAt, job: Job, tmp_path: Path
) -> None:
    code = made(job)
    codes = submitted(job, code, "one")
    server = proxied(then=on_delete(fault))
    done = call_at(server.base_url)("expire_request", code, keep=tmp_path / "kept")
    assert (done.outcome, deletes(server)) == ("expired", 1)
    assert still_there(job, code) == codes == kept(tmp_path / "kept")


@pytest.mark.parametrize(
    "fault",
    [faults.reset_before, envelope(500, 11), says(503)],
    ids=["a reset before", "500/11", "503"],
)
def test_a_delete_that_may_still_arrive_keeps_the_next_command_from_sending_another(
    fault: Fault, proxied: Proxied, call_at: CallAt, job: Job, tmp_path: Path
) -> None:
    code = made(job)
    codes = submitted(job, code, "one")
    server = proxied(then=on_delete(fault))
    caller = dataclasses.replace(call_at(server.base_url), deadline=30.0)
    with pytest.raises(OutcomeUnknownError) as caught:
        caller("expire_request", code, keep=tmp_path / "kept")
    assert caught.value.exit_code == 9
    assert "sends no second DELETE before" in caught.value.remedy
    server.mend()
    with pytest.raises(OutcomeUnknownError, match=r"still active|the time ran out"):
        caller("expire_request", code, keep=tmp_path / "kept")
    with pytest.raises(OutcomeUnknownError):
        caller("purge_request", code, confirm=code, keep=tmp_path / "kept")
    assert deletes(server) == 1
    # The first one arrives after all: nothing is lost, and the next command sees it.
    with client_of(job) as client:
        client.delete_request(code)
    assert caller("expire_request", code, keep=tmp_path / "kept").outcome == "already-expired"
    assert (deletes(server), still_there(job, code)) == (1, codes)


def test_after_an_unclear_delete_it_looks_five_times(
    proxied: Proxied, call: Caller, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Budget, "draw_backoff", lambda *_: 0.0)
    code = made(job)
    server = proxied(then=on_delete(says(503)))
    with pytest.raises(OutcomeUnknownError, match="still active"):
        dataclasses.replace(call, base_url=server.base_url)("expire_request", code)
    methods = [request.method for request in server.received()]
    assert methods[methods.index("DELETE") :] == ["DELETE", *["GET"] * 5]


@pytest.mark.parametrize("folder", ["kept", None], ids=["with a folder", "in one process"])
def test_a_request_reported_expired_gets_no_second_delete(
    folder: str | None, proxied: Proxied, call_at: CallAt, job: Job, tmp_path: Path
) -> None:
    """A cache, or a service restored from a backup."""
    code = made(job)
    codes = submitted(job, code, "one")
    with client_of(job) as client:
        before = client.get_request(code)
    assert before.expires_at is not None
    server = proxied()
    caller, keep = (
        dataclasses.replace(call_at(server.base_url), deadline=30.0),
        folder and tmp_path / folder,
    )
    assert caller("expire_request", code, keep=keep).outcome == "expired"
    stale = rewrites(public_key=before.public_key, expired_at=format_time(before.expires_at))
    server.plan(
        then=lambda exchange: (
            passes if exchange.received.target.endswith("submissions") else stale
        )(exchange)
    )
    for _ in range(2):
        with pytest.raises(
            OutcomeUnknownError, match="first reported it as expired, then as active"
        ):
            caller("expire_request", code, keep=keep)
    assert (deletes(server), still_there(job, code)) == (1, codes)


def test_the_same_holds_within_one_process_without_a_folder(
    proxied: Proxied, call_at: CallAt, job: Job
) -> None:
    code = made(job)
    server = proxied(then=on_delete(faults.reset_before))
    caller = dataclasses.replace(call_at(server.base_url), deadline=30.0)
    for _ in range(2):
        with pytest.raises(OutcomeUnknownError):
            caller("expire_request", code)
    assert deletes(server) == 1


def test_an_hour_later_another_delete_may_be_sent(
    proxied: Proxied, call_at: CallAt, job: Job, tmp_path: Path
) -> None:
    code = made(job)
    server = proxied(then=on_delete(once(faults.reset_before)))
    caller = dataclasses.replace(call_at(server.base_url), deadline=30.0)
    with pytest.raises(OutcomeUnknownError):
        caller("expire_request", code, keep=tmp_path / "kept")
    (record,) = (tmp_path / "kept").iterdir()
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    lines[-1]["sending"] = {
        "at": "2020-01-01T00:00:00+00:00",
        "told_at": "2020-01-01T00:00:00+00:00",
    }
    record.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert caller("expire_request", code, keep=tmp_path / "kept").outcome == "expired"
    assert deletes(server) == 2


def test_the_grace_hour_uses_the_services_clock_if_known(
    proxied: Proxied, call_at: CallAt, job: Job, tmp_path: Path
) -> None:
    code = made(job)
    server = proxied(then=on_delete(faults.reset_before))
    caller = dataclasses.replace(call_at(server.base_url), deadline=30.0)
    with pytest.raises(OutcomeUnknownError):
        caller("expire_request", code, keep=tmp_path / "kept")
    (record,) = (tmp_path / "kept").iterdir()
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    lines[-1]["sending"]["at"] = "2020-01-01T00:00:00+00:00"  # our clock was wrong then, or is now
    record.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with pytest.raises(OutcomeUnknownError):
        caller("expire_request", code, keep=tmp_path / "kept")
    assert deletes(server) == 1


def test_a_delete_that_would_leave_long_after_the_look_does_not_leave(
    proxied: Proxied, job: Job
) -> None:
    """The machine slept in between: by now the request may be about to end."""
    server, code = proxied(), made(job)
    times = (datetime.now(UTC) + number * timedelta(seconds=61) for number in range(100))
    with Client(
        api_key=job.api_key, base_url=server.base_url, link_base_url=job.service.link_base_url
    ) as client:
        with pytest.raises(errors.ConnectError):
            expiring.expire_request(client.session, code, None, now=lambda: next(times))
        assert (deletes(server), active(job, code)) == (0, True)
        assert client.expire_request(code).outcome == "expired"


def test_one_that_was_expired_while_its_submissions_were_read_gets_no_delete(
    proxied: Proxied, call_at: CallAt, job: Job
) -> None:
    code = made(job)
    codes = submitted(job, code, "one")

    def overtaken(exchange: Exchange) -> None:
        answer = exchange.forward()
        if exchange.received.target.endswith("/submissions") and active(job, code):
            with client_of(job) as somebody_else:
                somebody_else.delete_request(code)
        exchange.send(answer.head + answer.body)

    server = proxied(then=overtaken)
    assert call_at(server.base_url)("expire_request", code).outcome == "already-expired"
    assert (deletes(server), still_there(job, code)) == (0, codes)


SETTLED = {
    "403/78": (envelope(403, 78), errors.MissingScopeError),
    "401": (faults.unauthorized, errors.AuthenticationError),
    "429": (envelope(429, 107), errors.RateLimitError),
}


@pytest.mark.parametrize(("fault", "error"), SETTLED.values(), ids=SETTLED)
def test_a_delete_that_was_refused_was_not_carried_out_and_may_be_sent_by_the_next_command(
    fault: Fault,
    error: type[Exception],
    proxied: Proxied,
    call_at: CallAt,
    job: Job,
    tmp_path: Path,
) -> None:
    code = made(job)
    server = proxied(then=on_delete(once(fault)))
    caller = call_at(server.base_url)
    with pytest.raises(error):
        caller("expire_request", code, keep=tmp_path / "kept")
    assert deletes(server) == 1
    assert caller("expire_request", code, keep=tmp_path / "kept").outcome == "expired"
    assert deletes(server) == 2


@pytest.mark.parametrize(
    "fault", [says(500), faults.reset_after, envelope(403, 78)], ids=["500", "reset", "403/78"]
)
def test_where_the_submissions_cannot_be_read_no_delete_is_sent(
    fault: Fault, proxied: Proxied, call_at: CallAt, job: Job
) -> None:
    def unreadable(exchange: Exchange) -> None:
        (fault if exchange.received.target.endswith("/submissions") else passes)(exchange)

    server, code = proxied(then=unreadable), made(job)
    with pytest.raises(errors.ServiceError):
        dataclasses.replace(call_at(server.base_url), deadline=30.0)("expire_request", code)
    assert (deletes(server), active(job, code)) == (0, True)


def test_where_they_cannot_be_kept_no_delete_is_sent(
    proxied: Proxied, call_at: CallAt, job: Job, tmp_path: Path
) -> None:
    server, code = proxied(), made(job)
    (tmp_path / "kept").write_text("a file in its place")
    with pytest.raises(StateError):
        call_at(server.base_url)("expire_request", code, keep=tmp_path / "kept")
    assert (server.received(), active(job, code)) == ([], True)


def test_where_the_last_read_fails_it_says_that_the_request_has_expired(
    proxied: Proxied, call_at: CallAt, job: Job, tmp_path: Path
) -> None:
    code = made(job)
    submitted(job, code, "one")
    after = [False]

    def breaks_afterwards(exchange: Exchange) -> None:
        after[0] = after[0] or exchange.received.method == "DELETE"
        late = after[0] and exchange.received.target.endswith("/submissions")
        (says(500) if late else passes)(exchange)

    server = proxied(then=breaks_afterwards)
    with pytest.raises(
        DeliveryError, match="has expired, but its last submissions could not be stored"
    ):
        dataclasses.replace(call_at(server.base_url), deadline=30.0)(
            "expire_request", code, keep=tmp_path / "kept"
        )
    server.mend()
    assert (
        call_at(server.base_url)("expire_request", code, keep=tmp_path / "kept").outcome
        == "already-expired"
    )
    assert (deletes(server), kept(tmp_path / "kept")) == (1, still_there(job, code))


def test_a_request_that_ends_within_two_minutes_is_left_to_end_by_itself(
    proxied: Proxied, call_at: CallAt, job: Job
) -> None:
    server = proxied()
    code = made(job, expires_at=datetime.now(UTC) + timedelta(seconds=100))
    done = call_at(server.base_url)("expire_request", code)
    assert (done.outcome, deletes(server)) == ("expiring", 0)
    assert done.expires_at is not None
    with pytest.raises(errors.RetriesExhaustedError, match="too soon to expire it before"):
        call_at(server.base_url)("purge_request", code, confirm=code)


def test_without_the_services_clock_it_is_more_careful(
    proxied: Proxied, call_at: CallAt, job: Job
) -> None:
    server = proxied(then=undated)
    soon = made(job, expires_at=datetime.now(UTC) + timedelta(minutes=50))
    later = made(job, expires_at=datetime.now(UTC) + timedelta(minutes=70))
    assert call_at(server.base_url)("expire_request", soon).outcome == "expiring"
    assert call_at(server.base_url)("expire_request", later).outcome == "expired"
    assert deletes(server) == 1


@pytest.mark.parametrize(
    "members", [{"public_key": None}, {"expired_at": None}], ids=["no key", "no time"]
)
def test_a_request_of_which_it_is_not_clear_whether_it_is_active_gets_no_delete(
    members: dict[str, None], proxied: Proxied, call_at: CallAt, job: Job
) -> None:
    server, code = proxied(then=rewrites(**members)), made(job)
    with pytest.raises(errors.ProtocolError, match="it is unclear from the service's response"):
        dataclasses.replace(call_at(server.base_url), deadline=30.0)("expire_request", code)
    assert deletes(server) == 0


def test_a_concurrent_delete_is_reported_and_submissions_stay_stored(
    proxied: Proxied, call_at: CallAt, job: Job, tmp_path: Path
) -> None:
    code = made(job)
    codes = submitted(job, code, "one")

    def overtaken(exchange: Exchange) -> None:
        exchange.forward()
        passes(exchange)

    server = proxied(then=on_delete(overtaken))
    with pytest.raises(NotFoundError, match="another client expired request"):
        call_at(server.base_url)("expire_request", code, keep=tmp_path / "kept")
    assert kept(tmp_path / "kept") == codes


def test_commands_at_the_same_time_take_turns_and_send_one_delete(
    proxied: Proxied, call_at: CallAt, job: Job, tmp_path: Path
) -> None:
    server, code = proxied(), made(job)
    codes = submitted(job, code, "one")
    caller = call_at(server.base_url)
    with ThreadPoolExecutor(4) as pool:
        found = list(
            pool.map(lambda _: caller("expire_request", code, keep=tmp_path / "kept"), range(4))
        )
    assert sorted(done.outcome for done in found) == ["already-expired"] * 3 + ["expired"]
    assert (deletes(server), still_there(job, code), kept(tmp_path / "kept")) == (1, codes, codes)


def test_a_long_wait_reports_that_another_command_is_running(
    proxied: Proxied, call_at: CallAt, job: Job, tmp_path: Path
) -> None:
    server, code = proxied(then=on_delete(faults.holds)), made(job)
    caller = call_at(server.base_url)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(caller, "expire_request", code, keep=tmp_path / "kept")
        assert server.committed.wait(PATIENCE)
        with pytest.raises(StateError, match="another command is working on request"):
            dataclasses.replace(caller, deadline=0.3)(
                "expire_request", code, keep=tmp_path / "kept"
            )
        server.released.set()
        assert first.result(PATIENCE).outcome == "expired"


def test_a_cancelled_task_lets_go_of_the_request_and_the_next_call_sends_no_second_delete(
    proxied: Proxied, job: Job, tmp_path: Path
) -> None:
    server, code = proxied(then=on_delete(faults.holds)), made(job)

    async def cancelled() -> None:
        async with AsyncClient(
            api_key=job.api_key, base_url=server.base_url, link_base_url=job.service.link_base_url
        ) as client:
            task = asyncio.create_task(client.expire_request(code, keep=tmp_path / "kept"))
            await asyncio.to_thread(server.committed.wait, PATIENCE)
            task.cancel()
            server.released.set()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(cancelled())
    with Client(
        api_key=job.api_key, base_url=server.base_url, link_base_url=job.service.link_base_url
    ) as client:
        assert client.expire_request(code, keep=tmp_path / "kept").outcome == "already-expired"
    assert deletes(server) == 1


def test_a_task_that_is_cancelled_while_the_delete_is_noted_sends_none_and_leaves_no_note(
    proxied: Proxied, job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, code = proxied(), made(job)
    noted, going_on = threading.Event(), threading.Event()
    note_delete = Ledger.note_delete

    def slow(record: Ledger, sent: PendingDelete) -> None:
        note_delete(record, sent)
        noted.set()
        going_on.wait(PATIENCE)

    async def cancelled() -> None:
        async with AsyncClient(
            api_key=job.api_key, base_url=server.base_url, link_base_url=job.service.link_base_url
        ) as client:
            with monkeypatch.context() as patched:
                patched.setattr(Ledger, "note_delete", slow)
                task = asyncio.create_task(client.expire_request(code, keep=tmp_path / "kept"))
                await asyncio.to_thread(noted.wait, PATIENCE)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                going_on.set()
            assert deletes(server) == 0
            assert (await client.expire_request(code, keep=tmp_path / "kept")).outcome == "expired"

    asyncio.run(cancelled())
    assert deletes(server) == 1


def test_what_the_last_read_leaves_out_though_it_was_read_before_is_in_the_result(
    proxied: Proxied, call_at: CallAt, job: Job
) -> None:
    code = made(job)
    codes = submitted(job, code, "one", "two")
    answers = [passes, rewrites(submissions=[], count=0)]

    def forgetful(exchange: Exchange) -> None:
        (answers.pop(0) if exchange.received.target.endswith("/submissions") else passes)(exchange)

    done = call_at(proxied(then=forgetful).base_url)("expire_request", code)
    assert ([row.short_code for row in done.submissions], done.late) == (codes, 0)


def test_a_submission_returned_twice_counts_once(
    proxied: Proxied, call_at: CallAt, job: Job
) -> None:
    code = made(job)
    (sent,) = submitted(job, code, "one")

    def twice(exchange: Exchange) -> None:
        if not exchange.received.target.endswith("/submissions"):
            return passes(exchange)
        rows = json.loads(exchange.forward().body)["submissions"]
        return rewrites(submissions=[*rows, *rows, {**rows[0], "data": "AA=="}])(exchange)

    done = call_at(proxied(then=twice).base_url)("expire_request", code)
    assert ([row.short_code for row in done.submissions], done.late) == ([sent, sent], 0)


# -- purge ------------------------------------------------------------------------------------


def test_purging_expires_keeps_and_then_destroys(
    proxied: Proxied, call_at: CallAt, job: Job, tmp_path: Path
) -> None:
    code = made(job)
    codes = submitted(job, code, "one")
    server = proxied(then=on_delete(once(submits(job, code))))
    done = call_at(server.base_url)("purge_request", code, confirm=code, keep=tmp_path / "kept")
    assert (done.outcome, done.late, deletes(server)) == ("deleted", 1, 2)
    assert kept(tmp_path / "kept")[:1] == codes
    assert len(kept(tmp_path / "kept")) == 2
    with client_of(job) as client, pytest.raises(NotFoundError):
        client.get_request(code)


@pytest.mark.parametrize("confirm", ["", "other"])
def test_purging_without_the_confirmation_sends_nothing(
    confirm: str, proxied: Proxied, call_at: CallAt, job: Job
) -> None:
    server, code = proxied(), made(job)
    with pytest.raises(UsageError, match="not confirmed"):
        call_at(server.base_url)("purge_request", code, confirm=confirm)
    assert server.received() == []


@pytest.mark.parametrize(
    "fault", [faults.reset_after, envelope(500, 11, commits=True)], ids=["reset", "500/11"]
)
def test_not_there_after_our_own_unclear_delete_means_that_it_is_purged(
    fault: Fault, proxied: Proxied, call_at: CallAt, job: Job, tmp_path: Path
) -> None:
    code = made(job)
    call_at(job.service.base_url)("expire_request", code)
    server = proxied(then=on_delete(once(fault)))
    done = call_at(server.base_url)("purge_request", code, confirm=code, keep=tmp_path / "kept")
    assert (done.outcome, deletes(server)) == ("deleted", 2)


# -- killed -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "ends"),
    [(faults.holds, 0), (faults.holds_before, 9)],
    ids=["after it arrived", "before"],
)
def test_a_command_killed_around_its_delete_is_followed_by_no_second_one(
    fault: Fault, ends: int, proxied: Proxied, job: Job
) -> None:
    server, code = proxied(then=on_delete(fault)), made(job)
    codes = submitted(job, code, "one")
    job.terminal.environ["SEALPIPE_BASE_URL"] = server.base_url
    process = job.start("requests", "expire", code)
    assert server.committed.wait(PATIENCE)
    process.send_signal(signal.SIGKILL)
    assert ended(process).code == -9
    server.mend()
    done = job.run("requests", "expire", code, "--deadline", "30s")
    assert done.code == ends, done
    assert (deletes(server), active(job, code)) == (1, ends == 9)
    assert kept(job.state / "requests") == codes == still_there(job, code)


def test_a_purge_killed_after_its_delete_is_finished_by_running_it_again(
    proxied: Proxied, job: Job
) -> None:
    code = made(job)
    with client_of(job) as client:
        client.expire_request(code)
    server = proxied(then=on_delete(faults.holds))
    job.terminal.environ["SEALPIPE_BASE_URL"] = server.base_url
    process = job.start("requests", "purge", code, "--confirm", code)
    assert server.committed.wait(PATIENCE)
    process.kill()
    ended(process)
    server.mend()
    done = job.run("requests", "purge", code, "--confirm", code)
    assert (done.code, deletes(server)) == (0, 1), done
    assert job.run("requests", "purge", code, "--confirm", code).code == 6
