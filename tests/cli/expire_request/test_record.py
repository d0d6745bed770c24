"""The record of a request's end: what a kill tears off, what is strange in it, and who has it."""

from __future__ import annotations

import errno
import gc
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sealpipe import StateError
from sealpipe.api.requests import Submission
from sealpipe.state.ledger import Ledger, PendingDelete, open_ledger

BASE_URL, CODE = "https://api.example/v1", "AbC/1"
SENT = PendingDelete(
    datetime(2026, 11, 21, 12, 0, 0, 250000, UTC), datetime(2026, 11, 21, 12, tzinfo=UTC)
)
ONE, TWO = Submission("s1", "b25l"), Submission("s2", "dHdv")


@pytest.fixture(params=["on disk", "in memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "requests" if request.param == "on disk" else None


def opened(folder: Path | None, code: str = CODE) -> Ledger:
    record = open_ledger(folder, BASE_URL, code)
    assert record is not None
    return record


def file_of(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def written(tmp_path: Path) -> Path:
    """A record with a submission and a DELETE in it."""
    record = opened(tmp_path)
    record.keep([ONE])
    record.note_delete(SENT)
    record.close()
    return file_of(tmp_path)


def test_a_delete_that_was_noted_is_known_to_the_next_one_until_it_is_settled(
    folder: Path | None,
) -> None:
    record = opened(folder)
    record.note_delete(SENT)
    record.close()
    record = opened(folder)
    assert record.pending == SENT
    record.settle("expired")
    record.close()
    record = opened(folder)
    assert record.pending is None
    record.close()


def test_settling_a_delete_that_expires_says_nothing_of_one_that_destroys(
    folder: Path | None,
) -> None:
    record = opened(folder)
    record.note_delete(SENT)
    record.note_purge()
    record.settle("expired")
    record.close()
    record = opened(folder)
    assert (record.pending, record.is_purging) == (None, True)
    record.note_purge_result()
    record.close()
    record = opened(folder)
    assert not record.is_purging
    record.close()


def test_a_record_belongs_to_one_at_a_time_and_each_request_has_its_own(
    folder: Path | None,
) -> None:
    record = opened(folder)
    assert open_ledger(folder, BASE_URL, CODE) is None
    opened(folder, "another").close()
    other_service = open_ledger(folder, "https://other.example/v1", CODE)
    assert other_service is not None
    other_service.close()
    record.close()
    opened(folder).close()


def test_a_record_that_is_dropped_lets_go_of_its_lock(folder: Path | None) -> None:
    record: Ledger | None = opened(folder)
    assert record is not None
    record = None
    gc.collect()
    opened(folder).close()


def test_a_submission_is_kept_once_and_never_written_over(tmp_path: Path) -> None:
    record = opened(tmp_path)
    record.keep([ONE])
    before = file_of(tmp_path).read_bytes()
    record.keep([ONE, TWO])
    record.keep([TWO, Submission("s1", "YW5vdGhlcg==")])
    record.close()
    after = file_of(tmp_path).read_bytes()
    assert after.startswith(before)
    assert after.count(b'"submission"') == 3


def test_a_record_in_which_nothing_is_to_be_kept_leaves_no_file(tmp_path: Path) -> None:
    record = opened(tmp_path)
    assert file_of(tmp_path).stat().st_mode & 0o777 == 0o600
    record.keep([])
    record.settle("expired")
    record.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("left", [1, 10, -1])
def test_a_line_that_a_kill_tore_off_counts_as_never_written(left: int, tmp_path: Path) -> None:
    path = written(tmp_path)
    *whole, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole) + last[:left])
    record = opened(tmp_path)
    assert record.pending is None
    record.keep([TWO])
    record.close()
    assert path.read_bytes().splitlines(keepends=True)[:-1] == whole
    assert opened(tmp_path).pending is None


STRANGE = {
    "not JSON": b"{\n",
    "not an object": b"[]\n",
    "another kind of event": b'{"weather":"fine"}\n',
    "a time that is none": b'{"sending":{"at":"soon","told_at":null}}\n',
    "a time that is a number": b'{"sending":{"at":"2026-05-04T03:02:01Z","told_at":7}}\n',
    "a DELETE without its time": b'{"sending":{"told_at":null}}\n',
    "a purge that is neither": b'{"purging":"yes"}\n',
    "a place without a state": b'{"placing":{"marker":"a","place":"b"}}\n',
    "bytes of a disk that failed": b"\0" * 40 + b"\n",
}


@pytest.mark.parametrize("line", STRANGE.values(), ids=STRANGE)
def test_an_unknown_line_stops_because_it_may_record_a_delete(line: bytes, tmp_path: Path) -> None:
    path = written(tmp_path)
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*whole[:-1], line, whole[-1]]))
    with pytest.raises(StateError, match=f"line 3 of {path} is not a valid record"):
        open_ledger(tmp_path, BASE_URL, CODE)
    path.unlink()
    opened(tmp_path).close()


def test_the_record_of_another_request_is_not_taken_for_ours(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"AbC/1", b"AbC/2"))
    with pytest.raises(StateError, match="line 1"):
        open_ledger(tmp_path, BASE_URL, CODE)


def test_a_link_in_the_records_place_is_not_followed(tmp_path: Path) -> None:
    path = written(tmp_path / "requests")
    target = path.rename(tmp_path / "elsewhere")
    path.symlink_to(target)
    before = target.read_bytes()
    with pytest.raises(StateError):
        open_ledger(tmp_path / "requests", BASE_URL, CODE)
    assert target.read_bytes() == before


def test_a_note_that_may_not_have_reached_the_disk_does_not_count_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    record = opened(tmp_path)
    record.keep([ONE])
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(StateError, match="No space left"):
            record.note_delete(SENT)
    assert record.pending is None
    record.close()
    assert opened(tmp_path).pending is None
