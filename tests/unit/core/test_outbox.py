"""The outbox: what its files tell without the credential, and whose credential opens them."""

from __future__ import annotations

import json
import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sealpipe import CredentialError, Outbox, Secret, StateError
from sealpipe.api.operation import Credential
from sealpipe.state.entry import MAX_RESEND_AGE, Entry

KEY_ID, AUTH = "CImPemhu0OnFu67o", "qJD_fXTkHteKGs_0yDkgq7OPMa88-U4n6FfN7wYWebI"
CUSTODY = "NNY6bLKghJislAP-sRWdHiSlgw1UB3x7ui3diYhA2Z4"
CREDENTIAL = Credential.parse(f"svc_sk_live_{KEY_ID}.{AUTH}.{CUSTODY}")
BODY = b'{"data":"ciphertext"}'
META: dict[str, Any] = {
    "idempotency_key": "one",
    "fragment": Secret("1c4nary"),
    "passcode": Secret("c4nary"),
    "title": "c4nary",
}
NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)


@pytest.fixture
def outbox(tmp_path: Path) -> Outbox:
    return Outbox(tmp_path / "outbox", CREDENTIAL, "run 1")


def reopened(outbox: Outbox, entry: Entry) -> Entry:
    entry.close()
    again = outbox.open(entry.id)
    assert isinstance(again, Entry)
    return again


def test_an_entry_comes_back_as_it_was_put_away(outbox: Outbox) -> None:
    entry = reopened(outbox, outbox.add(META, BODY, NOW))
    assert {name: entry.meta[name] for name in META} == META
    assert (entry.body, entry.key, entry.created_at, entry.response) == (BODY, "one", NOW, None)


def test_what_was_noted_comes_back_too(outbox: Outbox) -> None:
    entry = outbox.add(META, BODY)
    entry.note_new_key("two")
    answer = {"short_code": "abc", "expires_at": None, "custody": "stored", "replayed": False}
    entry.note_response(answer)
    entry = reopened(outbox, entry)
    assert (entry.key, entry.response, entry.meta["idempotency_key"]) == ("two", answer, "one")


def test_the_file_tells_id_key_time_and_run_in_clear_and_nothing_else(outbox: Outbox) -> None:
    entry = outbox.add(META, BODY, NOW)
    content = entry.path.read_bytes()
    told = json.loads(content.partition(b"\n")[0])
    assert told.pop("salt")
    assert told == {
        "schema": 1, "id": entry.id, "key_id": KEY_ID, "created_at": "2026-05-04T03:02:01Z",
        "run": "run 1",
    }  # fmt: skip
    for secret in (b"c4nary", BODY, AUTH.encode(), CUSTODY.encode(), b"idempotency"):
        assert secret not in content
    assert stat.S_IMODE(entry.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(outbox.folder.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "text",
    [
        f"svc_sk_live_{KEY_ID}.{AUTH}",
        f"svc_sk_live_{KEY_ID}.{AUTH}.{AUTH}",
        f"svc_sk_live_{KEY_ID}.{CUSTODY}.{CUSTODY}",
        f"svc_sk_live_AAAAAAAAAAAAAAAA.{AUTH}.{CUSTODY}",
    ],
    ids=["two parts of it", "another custody part", "another auth part", "another key"],
)
def test_any_other_credential_opens_nothing(outbox: Outbox, text: str) -> None:
    entry = outbox.add(META, BODY)
    entry.close()
    with pytest.raises(StateError) as caught:
        Outbox(outbox.folder, Credential.parse(text)).open(entry.id)
    assert "credential" in caught.value.message + caught.value.remedy
    assert reopened(outbox, entry).body == BODY


def test_two_entries_are_sealed_under_different_keys(outbox: Outbox) -> None:
    first, second = outbox.add(META, BODY), outbox.add(META, BODY)
    line = first.path.read_bytes().partition(b"\n")[0]
    rest = second.path.read_bytes().partition(b"\n")[2]
    first.close()
    first.path.write_bytes(line + b"\n" + rest)
    with pytest.raises(StateError):
        outbox.open(first.id)


def test_without_a_credential_entries_are_listed_and_discarded_but_not_opened(
    outbox: Outbox,
) -> None:
    entry = outbox.add(META, BODY)
    entry.close()
    stranger = Outbox(outbox.folder, None, "run 1")
    assert [listed.id for listed in stranger.list()] == [entry.id]
    with pytest.raises(CredentialError):
        stranger.open(entry.id)
    stranger.discard(entry.id)
    assert stranger.list() == []


def test_the_list_is_of_one_run_or_of_all_oldest_first(outbox: Outbox) -> None:
    other = Outbox(outbox.folder, CREDENTIAL, "run 2")
    made = [
        outbox.add(META, BODY, NOW + timedelta(hours=3)),
        other.add(META, BODY, NOW + timedelta(hours=2)),
        outbox.add(META, BODY, NOW + timedelta(hours=1)),
    ]
    assert [listed.id for listed in outbox.list()] == [made[2].id, made[0].id]
    assert [listed.id for listed in other.list(every_run=True)] == [
        made[2].id,
        made[1].id,
        made[0].id,
    ]


@pytest.mark.parametrize(
    "content", [b"", b"junk\n", b"{}\n", b'{"id":1,"key_id":2,"created_at":3,"run":4}\n']
)
def test_a_file_that_is_none_of_ours_is_passed_over_and_left_alone(
    outbox: Outbox, content: bytes
) -> None:
    entry = outbox.add(META, BODY)
    stranger = outbox.folder / "aaaaaaaaaaaa.sealed"
    stranger.write_bytes(content)
    assert [listed.id for listed in outbox.list()] == [entry.id]
    with pytest.raises(StateError):
        outbox.open("aaaaaaaaaaaa")
    assert stranger.read_bytes() == content


HEADER = ("schema", "id", "key_id", "created_at", "run", "salt")
WRONG: dict[str, Any] = {
    "removed": None, "null": "null", "a number": "7", "a list": "[]", "true": "true", "empty": '""',
    "a word": '"%%%"', "an object": '{"a":1}', "text that is no text": '"\\ud800"',
}  # fmt: skip
STILL_WHOLE = {("run", "empty"), ("run", "a word"), ("run", "text that is no text")}
"""What may stand there: another entry's first line, which this one's records do not open under."""


@pytest.mark.parametrize("name", HEADER)
@pytest.mark.parametrize("change", WRONG)
def test_a_first_line_with_any_member_missing_or_wrong_is_damage(
    outbox: Outbox, name: str, change: str
) -> None:
    entry = outbox.add(META, BODY, NOW)
    entry.close()
    line, _, rest = entry.path.read_bytes().partition(b"\n")
    members = json.loads(line)
    if WRONG[change] is None:
        del members[name]
    else:
        members[name] = json.loads(WRONG[change])
    content = json.dumps(members).encode() + b"\n" + rest
    entry.path.write_bytes(content)
    with pytest.raises(StateError) as caught:
        outbox.open(entry.id)
    assert caught.value.exit_code == 2
    assert caught.value.remedy
    [listed] = outbox.list(every_run=True)
    assert listed.id == entry.id
    if (name, change) not in STILL_WHOLE | {("key_id", "a word")}:
        assert name in listed.damage
        assert name in caught.value.message
    assert entry.path.read_bytes() == content
    if (name, change) == ("schema", "a number"):
        with pytest.raises(StateError, match="newer sealpipe"):
            outbox.discard(entry.id)
        assert entry.path.read_bytes() == content
    else:
        outbox.discard(entry.id)
        assert outbox.list(every_run=True) == []


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_an_entry_changed_at_any_place_or_cut_anywhere_is_whole_or_damage(
    outbox: Outbox, data: st.DataObject
) -> None:
    entry = outbox.add(META, BODY, NOW)
    entry.close()
    whole = entry.path.read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    piece = data.draw(st.binary(max_size=4))
    entry.path.write_bytes(
        whole[:place] + piece + whole[place + data.draw(st.integers(0, len(whole))) :]
    )
    outbox.list(every_run=True)
    try:
        again = outbox.open(entry.id)
    except StateError as error:
        # Either is fine, and nothing else.
        assert error.exit_code == 2 and error.remedy  # noqa: PT017, PT018
    else:
        assert isinstance(again, Entry)
        assert again.body == BODY
        again.close()
    outbox.discard(entry.id)


def test_a_file_that_is_not_plain_does_not_block(outbox: Outbox) -> None:
    outbox.prepare()
    os.mkfifo(outbox.folder / "111111111111.sealed")
    (outbox.folder / "222222222222.sealed").mkdir()
    (outbox.folder / "333333333333.sealed").symlink_to("111111111111.sealed")
    assert outbox.list(every_run=True) == []
    for entry_id in ("111111111111", "222222222222", "333333333333"):
        with pytest.raises(StateError):
            outbox.open(entry_id)


def test_a_copy_under_another_id_is_damage_however_its_first_line_reads(outbox: Outbox) -> None:
    entry = outbox.add(META, BODY, NOW)
    entry.close()
    content = entry.path.read_bytes()
    copy = outbox.folder / "aaaaaaaaaaaa.sealed"
    for text, why in (
        (content, f"it is a copy of entry {entry.id}"),
        (
            content.replace(entry.id.encode(), b"aaaaaaaaaaaa"),
            "entry aaaaaaaaaaaa cannot be decrypted with this credential, or was modified",
        ),
    ):
        copy.write_bytes(text)
        with pytest.raises(StateError, match=why) as caught:
            outbox.open("aaaaaaaaaaaa")
        assert "`sealpipe resume aaaaaaaaaaaa --discard`" in caught.value.remedy
    copy.write_bytes(content)
    assert {listed.id: bool(listed.damage) for listed in outbox.list()} == {
        entry.id: False,
        "aaaaaaaaaaaa": True,
    }
    assert reopened(outbox, entry).body == BODY


def test_an_outbox_that_was_never_used_is_empty_and_makes_no_folder(outbox: Outbox) -> None:
    assert outbox.list() == []
    assert outbox.open("0123456789ab") == "gone"
    assert not outbox.folder.exists()


def test_an_entry_that_is_worked_on_is_busy_and_cannot_be_discarded(outbox: Outbox) -> None:
    entry = outbox.add(META, BODY)
    assert outbox.open(entry.id) == "busy"
    with pytest.raises(StateError, match="another process is working on"):
        outbox.discard(entry.id)
    entry.end()
    assert outbox.open(entry.id) == "gone"
    assert list(outbox.folder.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["", "..", "../x", "0123456789AB", "0123456789ab.sealed", "0123456789abc", "x" * 500]
)
def test_an_id_is_never_a_path(outbox: Outbox, name: str) -> None:
    for method in (outbox.open, outbox.discard):
        with pytest.raises(StateError, match="is not the id of an outbox entry") as caught:
            method(name)
        assert len(caught.value.message) < 100


@pytest.mark.parametrize(
    ("age", "too_old"),
    [
        (timedelta(0), False),
        (MAX_RESEND_AGE, False),
        (MAX_RESEND_AGE + timedelta(seconds=1), True),
        (-timedelta(minutes=9), False),
        (-timedelta(hours=1), True),
    ],
)
def test_an_entry_is_resent_for_23_hours_by_a_clock_that_was_not_set_back(
    outbox: Outbox, age: timedelta, *, too_old: bool
) -> None:
    assert timedelta(hours=23) == MAX_RESEND_AGE
    assert outbox.add(META, BODY, NOW).is_too_old(NOW + age) is too_old
