"""Which answers are taken, where they may go, and that a target without a place takes exactly
one.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.collect.submitter import ask, values
from sealpipe import UsageError
from sealpipe.collect.options import PICK_RULES, check_pick, has_match, pick
from sealpipe.collect.results import OpenedSubmission
from sealpipe.errors import (
    PendingError,
    SealpipeError,
    SubmissionNotFoundError,
    TooManySubmissionsError,
)
from sealpipe.sinks.targets import make_plain_name
from support.job import Caller, Job

THEN = datetime(2026, 11, 21, tzinfo=UTC)
RECEIVED = st.builds(
    OpenedSubmission,
    st.none() | st.text(max_size=2),
    st.none() | st.integers(0, 3).map(lambda number: THEN + timedelta(hours=number)),
    st.just(()),
    st.text("abc", min_size=5, max_size=6),
)


@pytest.mark.parametrize(
    ("how", "expected"), [("newest", "c"), ("oldest", "a"), ("only", None), ("each", "abc")]
)
def test_of_several_answers_those_are_taken_that_are_asked_for(
    call: Caller, job: Job, how: str, expected: str | None
) -> None:
    asked = ask(job)
    for password in "abc":
        asked.answer(password)
    if expected is None:
        with pytest.raises(TooManySubmissionsError, match="has 3 submissions") as caught:
            call("collect", asked.code, pick=how)
        assert caught.value.exit_code == 17
        assert caught.value.collected.submissions == ()
        return
    collected = call("collect", asked.code, pick=how)
    assert [typed for typed, _ in values(collected)] == list(expected)
    assert (collected.status, collected.count) == ("collected", 3)


def test_one_is_named_by_its_code_or_its_marker(call: Caller, job: Job) -> None:
    asked = ask(job)
    codes = [asked.answer(password) for password in "abc"]
    one = call("collect", asked.code, pick=codes[1])
    assert values(one) == [["b", "bob"]]
    assert values(call("collect", asked.code, pick=one.submissions[0].marker)) == [["b", "bob"]]


@pytest.mark.parametrize("ended", [False, True])
def test_an_unknown_submission_code_is_waited_for_then_reported(
    call: Caller, job: Job, *, ended: bool
) -> None:
    asked = ask(job)
    codes = [asked.answer()]
    if not ended:
        problem = call("collect", asked.code, pick="x\x1b[31m").problem()
        assert (type(problem), problem.exit_code) == (PendingError, 15)
        assert "its only submission is not x\\x1b[31m yet" in problem.message
        codes.append(asked.answer())
        problem = call("collect", asked.code, pick="x\x1b[31m").problem()
        assert "none of its 2 submissions is x\\x1b[31m yet" in problem.message
        return
    codes += [asked.answer() for _ in range(2)]
    asked.end()
    with pytest.raises(
        SubmissionNotFoundError, match=r"none of its 3 submissions is x\\x1b\[31m: "
    ) as caught:
        call("collect", asked.code, pick="x\x1b[31m")
    # Not "nobody had answered": they are there, and can be named.
    assert caught.value.exit_code == 17
    assert all(code in caught.value.message for code in codes)
    assert "--pick newest" in caught.value.remedy
    assert caught.value.collected.status == "failed"


def test_a_named_unusable_submission_is_reported_at_the_end(call: Caller, job: Job) -> None:
    asked = ask(job)
    asked.answer()
    rotten = asked.send(asked.sealed(b"no array"))
    asked.end()
    collected = call("collect", asked.code, pick=rotten)
    assert [each.short_code for each in collected.unreadable] == [rotten]
    assert collected.problem().exit_code == 13


SLIPS = {
    "newset": "newest", "Newest": "newest", "newst": "newest", "last": "newest", "LATEST": "newest",
    "oldst": "oldest", "first": "oldest", "all": "each", "eahc": "each", "any": "only",
    "one": "only", "onyl": "only",
}  # fmt: skip


@pytest.mark.parametrize("word", SLIPS)
def test_a_slip_of_a_word_is_refused_before_anything_is_asked(job: Job, word: str) -> None:
    caller = Caller(job.api_key, "http://127.0.0.1:9/v1", job.service.link_base_url)
    with pytest.raises(UsageError) as caught:
        caller("collect", "any-code", pick=word)
    assert caught.value.exit_code == 2
    assert f"did you mean {SLIPS[word]}?" in caught.value.remedy


CODES = st.text("abcdefghijklmnopqrstuvwxyzNEWSTOLDACH0123456789-_", min_size=11, max_size=24)


@given(
    CODES
    | st.builds(
        str.__add__,
        st.sampled_from([*PICK_RULES, *SLIPS]),
        st.from_regex(r"\.[0-9a-f]{12}", fullmatch=True),
    )
)
def test_no_code_of_eleven_signs_and_no_marker_is_taken_for_a_slip(code: str) -> None:
    check_pick(code)


@pytest.mark.parametrize("how", ["only", "newest", "oldest"])
def test_one_answer_is_stored_and_two_are_not_where_one_belongs(
    call: Caller, job: Job, tmp_path: Path, how: str
) -> None:
    asked, target = ask(job, "Password"), tmp_path / "pw"
    asked.send_fields(("Password", "first"))
    assert call("collect", asked.receipt, to=[f"file:{target}"]).stored[0].already is False
    assert target.read_text() == "first"
    asked.send_fields(("Password", "second"))
    if how != "oldest":
        with pytest.raises(SealpipeError) as caught:
            call("collect", asked.receipt, to=[f"file:{target}"], pick=how)
        assert caught.value.exit_code == (17 if how == "only" else 14)
    assert target.read_text() == "first"


PLACES = {
    "each, and no place": (["file:/x"], "each", 1),
    "each, and the request's place": (["file:/x/{request}"], "each", 1),
    "several requests, and no place": (["file:/x"], "only", 2),
    "several requests, and one of two targets has no place": (
        ["file:/x/{request}", "file:/x"],
        "newest",
        2,
    ),
}


@pytest.mark.parametrize("case", PLACES)
def test_a_place_for_the_submission_is_demanded_before_anything_is_asked(
    job: Job, case: str
) -> None:
    targets, how, number = PLACES[case]
    caller = Caller(job.api_key, "http://127.0.0.1:9/v1", job.service.link_base_url)
    with pytest.raises(UsageError, match="accepts one submission"):
        caller("collect_each", ["a", "b"][:number], to=targets, pick=how)


def test_with_its_place_each_answer_of_each_request_is_stored_apart(
    call: Caller, job: Job, tmp_path: Path
) -> None:
    requests = [ask(job, "Password"), ask(job, "Password")]
    for asked in requests:
        for value in "ab":
            asked.send_fields(("Password", value))
    target = f"file:{tmp_path}/{{request}}-{{submission}}.typed"
    found = call("collect_each", [asked.receipt for asked in requests], to=[target], pick="each")
    assert [each.count for each in found] == [2, 2]
    names = {path.name: path.read_text() for path in tmp_path.glob("*.typed")}
    assert names == {
        f"{make_plain_name(each.short_code)}-{row.marker}.typed": typed
        for each in found
        for row, (typed,) in zip(each.submissions, values(each), strict=True)
    }
    assert len(names) == 4


@pytest.mark.parametrize("names", [["a", "b", "a"], [""], [".."], []])
def test_requests_are_named_once_and_by_what_can_be_a_code(call: Caller, names: list[str]) -> None:
    with pytest.raises(UsageError):
        call("collect_each", names)


@given(
    st.lists(RECEIVED, max_size=5),
    st.sampled_from(["only", "newest", "oldest", "each", "a", "", "abcab"]),
)
def test_at_most_one_is_taken_unless_each_is_asked_for(
    found: list[OpenedSubmission], how: str
) -> None:
    try:
        taken = pick(found, how, "r")
    except TooManySubmissionsError as error:
        told = error
    else:
        told = None
    if told is not None:
        assert how not in ("newest", "oldest", "each")
        assert told.message.isprintable()
        return
    assert all(any(each is one for one in found) for each in taken)
    assert len(taken) == len(found) if how == "each" else len(taken) <= 1
    assert bool(taken) is has_match(found, how)
    if how in ("newest", "oldest") and found:
        times = [each.created_at or datetime.min.replace(tzinfo=UTC) for each in found]
        chosen = taken[0].created_at or datetime.min.replace(tzinfo=UTC)
        assert chosen == (max if how == "newest" else min)(times)
