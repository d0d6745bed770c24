"""The outbox: what its files tell without the credential, and whose credential opens them."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sealpipe import CredentialError, Outbox, Secret, StateError
from sealpipe.credential import Credential
from sealpipe.state.entry import RESENDABLE, Entry

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
    assert (entry.body, entry.key, entry.created_at, entry.answered) == (BODY, "one", NOW, None)


def test_what_was_noted_comes_back_too(outbox: Outbox) -> None:
    entry = outbox.add(META, BODY)
    entry.note_new_key("two")
    answer = {"short_code": "abc", "expires_at": None, "custody": "stored", "replayed": False}
    entry.note_answer(answer)
    entry = reopened(outbox, entry)
    assert (entry.key, entry.answered, entry.meta["idempotency_key"]) == ("two", answer, "one")


def test_the_file_tells_id_key_time_and_run_in_clear_and_nothing_else(outbox: Outbox) -> None:
    entry = outbox.add(META, BODY, NOW)
    content = entry.path.read_bytes()
    told = json.loads(content.partition(b"\n")[0])
    assert told.pop("salt")
    assert told == {
        "schema": 1, "id": entry.id, "key_id": KEY_ID, "created_at": "2026-05-04T03:02:01Z", "run": "run 1",
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


def test_without_a_credential_entries_are_listed_and_discarded_but_not_opened(outbox: Outbox) -> None:
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
    assert [listed.id for listed in other.list(every_run=True)] == [made[2].id, made[1].id, made[0].id]


@pytest.mark.parametrize("content", [b"", b"junk\n", b"{}\n", b'{"id":1,"key_id":2,"created_at":3,"run":4}\n'])
def test_a_file_that_is_none_of_ours_is_passed_over_and_left_alone(outbox: Outbox, content: bytes) -> None:
    entry = outbox.add(META, BODY)
    stranger = outbox.folder / "aaaaaaaaaaaa.sealed"
    stranger.write_bytes(content)
    assert [listed.id for listed in outbox.list()] == [entry.id]
    with pytest.raises(StateError):
        outbox.open("aaaaaaaaaaaa")
    assert stranger.read_bytes() == content


def test_an_outbox_that_was_never_used_is_empty_and_makes_no_folder(outbox: Outbox) -> None:
    assert outbox.list() == []
    assert outbox.open("0123456789ab") == "gone"
    assert not outbox.folder.exists()


def test_an_entry_that_is_worked_on_is_busy_and_cannot_be_discarded(outbox: Outbox) -> None:
    entry = outbox.add(META, BODY)
    assert outbox.open(entry.id) == "busy"
    with pytest.raises(StateError, match="another process works on"):
        outbox.discard(entry.id)
    entry.end()
    assert outbox.open(entry.id) == "gone"
    assert list(outbox.folder.iterdir()) == []


@pytest.mark.parametrize("name", ["", "..", "../x", "0123456789AB", "0123456789ab.sealed", "0123456789abc", "x" * 500])
def test_an_id_is_never_a_path(outbox: Outbox, name: str) -> None:
    for method in (outbox.open, outbox.discard):
        with pytest.raises(StateError, match="is not the id of an outbox entry") as caught:
            method(name)
        assert len(caught.value.message) < 100


@pytest.mark.parametrize(
    ("age", "too_old"),
    [
        (timedelta(0), False),
        (RESENDABLE, False),
        (RESENDABLE + timedelta(seconds=1), True),
        (-timedelta(minutes=9), False),
        (-timedelta(hours=1), True),
    ],
)
def test_an_entry_is_resent_for_23_hours_by_a_clock_that_was_not_set_back(
    outbox: Outbox, age: timedelta, *, too_old: bool
) -> None:
    assert timedelta(hours=23) == RESENDABLE
    assert outbox.add(META, BODY, NOW).too_old(NOW + age) is too_old
