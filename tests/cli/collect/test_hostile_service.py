"""A service that repeats, drops, confuses, or ends what it was not to end: the promised exit code,
nothing lost.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from cli.collect.submitter import Asked, ask, hands_out, hours, kept, on, values
from sealpipe.collect.options import plan_collect
from sealpipe.errors import DeliveryError, NotFoundError, ProtocolError, SealpipeError
from support import faults
from support.faults import rewrites, says
from support.faulty import Exchange, Fault, passes
from support.job import Caller, Job, Proxied, deletes, once

CallAt = Callable[[str], Caller]


def test_what_it_repeats_is_delivered_once(
    call_at: CallAt, proxied: Proxied, job: Job, tmp_path: Path
) -> None:
    asked = ask(job)
    asked.answer()
    server = proxied(then=hands_out(lambda rows: rows * 3, count=3))
    collected = call_at(server.base_url)(
        "collect", asked.receipt, to=[f"file:{tmp_path}/pw#staging_password"]
    )
    assert (collected.count, len(collected.stored), values(collected)) == (
        1,
        1,
        [["hunter2", "bob"]],
    )


def test_what_it_repeats_under_another_code_is_two_answers_and_none_is_stored(
    call_at: CallAt, proxied: Proxied, job: Job, tmp_path: Path
) -> None:
    asked = ask(job)
    asked.answer()
    server = proxied(then=hands_out(lambda rows: [*rows, {**rows[0], "short_code": "other"}]))
    with pytest.raises(SealpipeError) as caught:
        call_at(server.base_url)(
            "collect", asked.receipt, to=[f"file:{tmp_path}/pw#staging_password"]
        )
    assert caught.value.exit_code == 17
    assert not (tmp_path / "pw").exists()


def test_two_under_one_code_are_never_both_taken_where_one_was_named(
    call_at: CallAt, proxied: Proxied, job: Job, tmp_path: Path
) -> None:
    asked, target = ask(job), f"file:{tmp_path}/pw#staging_password"
    asked.answer("a")
    asked.answer("b")
    server = proxied(then=hands_out(lambda rows: [{**row, "short_code": "same"} for row in rows]))
    caller = call_at(server.base_url)
    with pytest.raises(
        SealpipeError, match=r"same\.[0-9a-f]{12}, same\.[0-9a-f]{12}; nothing was stored"
    ) as caught:
        caller("collect", asked.receipt, pick="same", to=[target], mode="replace")
    assert caught.value.exit_code == 17
    each = caller("collect", asked.receipt, pick="each")
    assert values(each) == [["a", "bob"], ["b", "bob"]]
    second = caller("collect", asked.receipt, pick=each.submissions[1].marker, to=[target])
    assert values(second) == [["b", "bob"]]
    assert (tmp_path / "pw").read_text() == "b"


def test_what_it_drops_between_two_reads_is_not_gone(
    job: Job, proxied: Proxied, tmp_path: Path
) -> None:
    asked = ask(job)
    asked.answer("a")
    reads = itertools.count()
    # Read while waiting for a code: the first answer is dropped before the second one comes.
    server = proxied(then=hands_out(lambda rows: rows if next(reads) == 0 else rows[1:]))
    time = hours(job, server.base_url)
    codes: list[str] = []
    time.at(20, lambda: codes.append(asked.answer("b")))
    plan = plan_collect([asked.code], wait=timedelta(minutes=5), pick="nobody", state=tmp_path)
    (collected,) = time.collect(plan)
    assert collected.count == 2
    assert "none of its 2 submissions is nobody" in str(collected.problem())


COUNTS = {"more than there are": 10**18, "negative": -5, "none": None}


@pytest.mark.parametrize("name", COUNTS)
def test_a_count_is_believed_only_where_it_says_that_some_are_missing(
    call_at: CallAt, proxied: Proxied, job: Job, name: str
) -> None:
    asked = ask(job)
    asked.answer()
    server = proxied(then=on("/submissions", rewrites(count=COUNTS[name])))
    caller = call_at(server.base_url)
    if name == "more than there are":
        caller.deadline = 1.0
        with pytest.raises(ProtocolError, match="but returned 1"):
            caller("collect", asked.code)
    else:
        assert values(caller("collect", asked.code)) == [["hunter2", "bob"]]


def test_submissions_without_end_to_end_encryption_are_reported(
    call_at: CallAt, proxied: Proxied, job: Job
) -> None:
    asked = ask(job)
    server = proxied(then=on("/submissions", rewrites(skipped_not_end_to_end_encrypted=10**20)))
    collected = call_at(server.base_url)("collect", asked.code)
    assert collected.status == "pending"
    assert f"{10**20} submissions were not end-to-end encrypted" in collected.problem().message


# -- ending -------------------------------------------------------------------------------------


def deleted_instead(asked: Asked) -> Fault:
    """Somebody else ends it in the same moment: so the DELETE destroys."""

    def fault(exchange: Exchange) -> None:
        asked.end()
        passes(exchange)

    return on("", fault, "DELETE")


@pytest.mark.parametrize("stored", [True, False])
def test_deleted_instead_of_expired_is_reported_after_collecting(
    call_at: CallAt, proxied: Proxied, job: Job, tmp_path: Path, *, stored: bool
) -> None:
    asked = ask(job)
    asked.answer()
    server = proxied(then=deleted_instead(asked))
    to = [f"file:{tmp_path}/pw#staging_password"] if stored else []
    with pytest.raises(NotFoundError, match="deleted it for good") as caught:
        call_at(server.base_url)(
            "collect", asked.receipt, to=to, after="expire", state=tmp_path / "state"
        )
    assert caught.value.exit_code == 6
    collected = caught.value.collected
    assert (collected.status, values(collected)) == ("collected", [["hunter2", "bob"]])
    assert len(kept(tmp_path / "state")) == 1
    assert deletes(server) == 1
    assert not stored or (tmp_path / "pw").read_text() == "hunter2"


def test_deleted_reported_for_an_expiry_is_still_reported(
    call_at: CallAt, proxied: Proxied, job: Job, tmp_path: Path
) -> None:
    asked = ask(job)
    asked.answer()
    server = proxied(then=on("", rewrites(outcome="deleted"), "DELETE"))
    with pytest.raises(NotFoundError):
        call_at(server.base_url)("collect", asked.code, after="expire", state=tmp_path)
    assert not asked.active()
    assert (len(kept(tmp_path)), deletes(server)) == (1, 1)


def late(asked: Asked) -> Fault:
    """Somebody answers while the DELETE is on its way."""

    def fault(exchange: Exchange) -> None:
        asked.answer("late")
        passes(exchange)

    return on("", once(fault), "DELETE")


def test_what_comes_while_it_ends_is_stored_too_with_each(
    call_at: CallAt, proxied: Proxied, job: Job, tmp_path: Path
) -> None:
    asked, folder = ask(job), tmp_path / "out"
    asked.answer("early")
    server = proxied(then=late(asked))
    collected = call_at(server.base_url)(
        "collect", asked.receipt, pick="each", folder=folder, after="expire"
    )
    assert [typed for typed, _ in values(collected)] == ["early", "late"]
    assert (collected.late, collected.count, len(collected.stored)) == (1, 2, 2)
    assert sorted(path.read_text() for path in folder.glob("*/staging_password")) == [
        "early",
        "late",
    ]
    assert collected.problem() is None


def test_otherwise_it_is_stored_and_reported(
    call_at: CallAt, proxied: Proxied, job: Job, tmp_path: Path
) -> None:
    asked = ask(job)
    asked.answer("early")
    server = proxied(then=late(asked))
    to = [f"file:{tmp_path}/pw#staging_password"]
    collected = call_at(server.base_url)(
        "collect", asked.receipt, to=to, after="expire", state=tmp_path / "state"
    )
    assert [typed for typed, _ in values(collected)] == ["early"]
    assert (collected.late, len(kept(tmp_path / "state"))) == (1, 2)
    assert collected.kept_in is not None
    assert (tmp_path / "pw").read_text() == "early"


@pytest.mark.parametrize(
    ("words", "effect"),
    [
        (("--pick", "each", "--dir", "out"), "collected, too"),
        (("--to", "file:pw#staging_password"), "kept for `sealpipe collect --pick`"),
    ],
)
def test_the_command_says_where_a_late_submission_is(
    proxied: Proxied, job: Job, words: tuple[str, ...], effect: str
) -> None:
    asked = ask(job)
    asked.answer("early")
    job.terminal.environ["SEALPIPE_BASE_URL"] = proxied(then=late(asked)).base_url
    done = job.run("collect", asked.file(), *words, "--after", "expire")
    assert done.code == 0, done
    assert f"{asked.code}: 1 submission arrived while the request expired: {effect}\n" in done.err


def test_a_late_submission_that_cannot_be_stored_is_reported(
    call_at: CallAt, proxied: Proxied, job: Job, tmp_path: Path
) -> None:
    asked, folder = ask(job), tmp_path / "out"
    asked.answer("early")

    def fault(exchange: Exchange) -> None:
        asked.send_fields(*[(f"f{number}", "x") for number in range(1001)])
        passes(exchange)

    server = proxied(then=on("", fault, "DELETE"))
    collected = call_at(server.base_url)(
        "collect", asked.receipt, pick="each", folder=folder, after="expire"
    )
    assert (collected.late, len(collected.unreadable), collected.problem().exit_code) == (1, 1, 13)


UNCLEAR: dict[str, tuple[Fault, int | None]] = {
    "an answer that is lost": (faults.reset_after, None),
    "a refusal": (says(403, '{"error_code": 78, "message": "no"}'), 4),
    "nothing at all": (faults.reset_before, 9),
}


@pytest.mark.parametrize("name", UNCLEAR)
def test_where_ending_fails_everything_is_in_its_place_and_one_delete_was_sent(
    call_at: CallAt, proxied: Proxied, job: Job, tmp_path: Path, name: str
) -> None:
    fault, code = UNCLEAR[name]
    asked = ask(job)
    asked.answer()
    server = proxied(then=on("", fault, "DELETE"))
    caller = call_at(server.base_url)
    caller.deadline = 1.0
    (collected,) = caller(
        "collect_each",
        [asked.receipt],
        to=[f"file:{tmp_path}/pw#staging_password"],
        after="expire",
        state=tmp_path / "s",
    )
    raised = collected.problem()
    assert (None if raised is None else raised.exit_code) == code
    assert (collected.status, len(collected.stored), deletes(server)) == ("collected", 1, 1)
    assert (collected.ended is None) is (code is not None)


def test_late_ones_that_cannot_be_read_are_11(
    call_at: CallAt, proxied: Proxied, job: Job, tmp_path: Path
) -> None:
    asked = ask(job)
    asked.answer()
    ended: list[bool] = []

    def fault(exchange: Exchange) -> None:
        if exchange.received.method == "DELETE":
            ended.append(True)
        over = ended and exchange.received.target.endswith("/submissions")
        (says(404, '{"error_code": 70, "message": "no"}') if over else passes)(exchange)

    caller = call_at(proxied(then=fault).base_url)
    with pytest.raises(DeliveryError) as caught:
        caller(
            "collect", asked.receipt, to=[f"file:{tmp_path}/pw#staging_password"], after="expire"
        )
    assert caught.value.exit_code == 11
    assert len(caught.value.collected.stored) == 1


# -- no DELETE before everything is in its place ------------------------------------------------


@pytest.mark.parametrize("which", [0, 1])
def test_where_one_place_fails_the_others_are_stored_and_no_delete_is_ever_sent(
    call_at: CallAt, proxied: Proxied, job: Job, tmp_path: Path, which: int
) -> None:
    asked, server = ask(job), proxied()
    asked.answer()
    (tmp_path / "a").write_text("somebody else's")
    targets = [f"file:{tmp_path}/a#staging_password", f"file:{tmp_path}/b#user"]
    to = targets if which else targets[::-1]
    (collected,) = call_at(server.base_url)(
        "collect_each", [asked.receipt], to=to, after="expire", state=tmp_path / "state"
    )
    assert collected.problem().exit_code == 14
    assert ((tmp_path / "a").read_text(), (tmp_path / "b").read_text()) == (
        "somebody else's",
        "bob",
    )
    assert (deletes(server), asked.active(), len(kept(tmp_path / "state"))) == (0, True, 1)
    (tmp_path / "a").unlink()
    again = call_at(server.base_url)(
        "collect", asked.receipt, to=to, after="expire", state=tmp_path / "state"
    )
    assert sorted(each.already for each in again.stored) == [False, True]
    assert (deletes(server), asked.active()) == (1, False)


def test_a_request_without_submissions_is_not_expired(
    call_at: CallAt, proxied: Proxied, job: Job
) -> None:
    asked, server = ask(job), proxied()
    assert call_at(server.base_url)("collect", asked.code, after="expire").status == "pending"
    assert (deletes(server), asked.active()) == (0, True)


def test_one_that_has_expired_gets_no_delete(call_at: CallAt, proxied: Proxied, job: Job) -> None:
    asked, server = ask(job), proxied()
    asked.answer()
    asked.end()
    collected = call_at(server.base_url)("collect", asked.code, after="expire")
    assert collected.ended is not None
    assert (collected.ended.outcome, deletes(server)) == ("already-expired", 0)


def test_bytes_that_are_no_text_are_stored_decoded(call: Caller, job: Job, tmp_path: Path) -> None:
    asked, content = ask(job), bytes(range(256))
    asked.answer(base64.b64encode(content).decode())
    call("collect", asked.receipt, to=[f"file:{tmp_path}/key?decode=base64#staging_password"])
    assert (tmp_path / "key").read_bytes() == content
