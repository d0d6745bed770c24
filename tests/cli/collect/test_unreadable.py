"""What cannot be used stops nothing and is not lost: its ciphertext is kept, once, and it is
counted.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.collect.submitter import Asked, ask, hands_out, hours, kept, values
from sealpipe.collect.options import plan_collect
from sealpipe.errors import UnreadableSubmissionError
from sealpipe.wire import fields, sealed_box
from sealpipe.wire.encoding import decode_base64url, encode_base64
from sealpipe.wire.fields import Field
from support.job import PAIR, Caller, Job, Proxied

ANSWER = Field("Staging password", "x"), Field("User name", "y", "text")


def garbage(_: Asked) -> str:
    return encode_base64(bytes(range(200)))


def to_another_key(_: Asked) -> str:
    return sealed_box.seal(PAIR.public_key, fields.dump(ANSWER))


def under_another_tag(asked: Asked) -> str:
    return sealed_box.seal(
        decode_base64url(asked.receipt.public_key), fields.dump(ANSWER), tag="other"
    )


def plaintext(text: str) -> Callable[[Asked], str]:
    return lambda asked: asked.sealed(text.encode())


def answers(*found: Field) -> Callable[[Asked], str]:
    return lambda asked: asked.sealed(fields.dump(found))


BAD: dict[str, Callable[[Asked], str]] = {
    "garbage": garbage,
    "another key": to_another_key,
    "another tag": under_another_tag,
    "not JSON": plaintext("{"),
    "not UTF-8": lambda asked: asked.sealed(b"\xff\xfe"),
    "no array": plaintext('{"key": "Staging password", "value": "x", "type": "password"}'),
    "an array of non-fields": plaintext("[1, null]"),
    "fields without labels": plaintext(
        '[{"label": "Staging password", "value": "x", "type": "password"}]'
    ),
    "a value that is no text": plaintext(
        '[{"key": "Staging password", "value": 7, "type": "password"}]'
    ),
    "very deep JSON": plaintext("[" * 100_000),
    "a missing answer": answers(ANSWER[1]),
    "an empty answer": answers(Field("Staging password", ""), ANSWER[1]),
    "answered twice, differently": answers(*ANSWER, Field("Staging password", "z")),
    "no fields": answers(),
}
TARGET = "#staging_password"


@pytest.mark.parametrize("name", BAD)
def test_one_that_cannot_be_used_stops_no_other_and_is_kept_once(
    call: Caller, job: Job, tmp_path: Path, name: str
) -> None:
    asked, state, target = ask(job), tmp_path / "state", tmp_path / "pw"
    data = BAD[name](asked)
    bad, good = asked.send(data), asked.answer()
    for already in (False, True):
        collected = call("collect", asked.receipt, to=[f"file:{target}{TARGET}"], state=state)
        assert target.read_text() == "hunter2"
        assert [each.short_code for each in collected.submissions] == [good]
        assert [each.already for each in collected.stored] == [already]
        assert [each.short_code for each in collected.unreadable] == [bad]
        assert collected.count == 2
        assert [(row["short_code"], row["data"]) for row in kept(state)] == [(bad, data)]
        problem = collected.problem()
        assert isinstance(problem, UnreadableSubmissionError)
        assert problem.exit_code == 13
        assert "1 of 2" in problem.message
    assert collected.kept_in is not None
    assert collected.kept_in.stat().st_mode & 0o777 == 0o600


def test_what_answered_twice_alike_is_one_answer(call: Caller, job: Job, tmp_path: Path) -> None:
    asked = ask(job)
    asked.send(answers(*ANSWER, ANSWER[0])(asked))
    assert call("collect", asked.receipt, to=[f"file:{tmp_path}/pw{TARGET}"]).problem() is None


def test_where_nothing_is_taken_of_it_any_field_array_will_do(call: Caller, job: Job) -> None:
    asked = ask(job)
    asked.send_fields(("Something else", "v"))
    assert values(call("collect", asked.code)) == [["v"]]


def test_one_without_data_is_counted_and_kept(
    call_at: Any, proxied: Proxied, job: Job, tmp_path: Path
) -> None:
    asked = ask(job)
    asked.answer()
    server = proxied(then=hands_out(lambda rows: [*rows, {"short_code": "empty"}]))
    collected = call_at(server.base_url)("collect", asked.code, state=tmp_path)
    assert values(collected) == [["hunter2", "bob"]]
    assert [(each.short_code, each.reason) for each in collected.unreadable] == [
        ("empty", "it has no content")
    ]
    assert [row["short_code"] for row in kept(tmp_path)] == ["empty"]


@pytest.mark.parametrize("ended", [False, True])
def test_where_it_is_the_only_one_it_is_13(
    call: Caller, job: Job, tmp_path: Path, *, ended: bool
) -> None:
    asked = ask(job)
    asked.send(garbage(asked))
    if ended:
        asked.end()
    collected = call("collect", asked.code, state=tmp_path)
    assert collected.status == ("expired" if ended else "pending")
    assert collected.problem().exit_code == 13
    assert len(kept(tmp_path)) == 1


def test_with_too_many_answers_it_is_17_and_what_cannot_be_opened_is_kept(
    call: Caller, job: Job, tmp_path: Path
) -> None:
    asked = ask(job)
    asked.send(garbage(asked))
    asked.answer("a")
    asked.answer("b")
    (collected,) = call("collect_each", [asked.code], state=tmp_path)
    assert (collected.status, collected.problem().exit_code, len(collected.unreadable)) == (
        "failed",
        17,
        1,
    )
    assert len(kept(tmp_path)) == 1


def test_while_only_such_a_one_is_there_it_goes_on_waiting(job: Job, tmp_path: Path) -> None:
    asked, time = ask(job), hours(job)
    asked.send(garbage(asked))
    time.at(100, asked.answer)
    (collected,) = time.collect(plan_collect([asked.code], wait=timedelta(hours=1), state=tmp_path))
    assert values(collected) == [["hunter2", "bob"]]
    assert 100 <= time.now < 130
    assert (collected.count, len(collected.unreadable), len(kept(tmp_path))) == (2, 1, 1)


def test_a_dry_run_keeps_nothing(job: Job, tmp_path: Path) -> None:
    asked = ask(job)
    asked.send(garbage(asked))
    asked.answer()
    (collected,) = hours(job).collect(
        plan_collect([asked.code], state=tmp_path / "state"), dry_run=True
    )
    assert len(collected.unreadable) == 1
    assert not (tmp_path / "state").exists()
