"""The sealed journal: torn, flipped, shuffled and carried off, at every place where that can
happen.
"""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given, settings
from hypothesis import strategies as st

from sealpipe import StateError
from sealpipe.state.journal import CHUNK_SIZE, Journal, read_header
from support.damage import flipped

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))
HEADER = {"schema": 1, "id": "0123456789ab"}
RECORDS = [
    (b"M", b'{"meta":1}'),
    (b"B", b"the body, which is longer than the rest" * 3),
    (b"E", b""),
]


def written(
    path: Path, records: list[tuple[bytes, bytes]] = RECORDS, key: bytes = KEY, **header: object
) -> bytes:
    """The bytes of a journal with these records."""
    Journal.create(path, key, {**HEADER, **header}, records).close()
    return path.read_bytes()


def read(path: Path, key: bytes = KEY) -> list[tuple[bytes, bytes]]:
    journal, records = Journal.open(path, key)
    journal.close()
    return records


def starts(content: bytes) -> list[int]:
    """Where each record begins, and where the last one ends."""
    found = [content.index(b"\n") + 1]
    while found[-1] < len(content):
        found.append(found[-1] + 4 + int.from_bytes(content[found[-1] : found[-1] + 4]))
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal"


def test_what_was_written_is_read(path: Path) -> None:
    written(path)
    assert read(path) == RECORDS
    assert read_header(path) == HEADER
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_layout_is_the_one_that_is_written_down(path: Path) -> None:
    """Read here by the words of the module's docstring, without its code."""
    content = written(path)
    line, _, rest = content.partition(b"\n")
    bound = hashlib.sha256(line + b"\n").digest()
    found: list[tuple[bytes, bytes]] = []
    while rest:
        size = int.from_bytes(rest[:4])
        nonce, sealed, rest = rest[4:16], rest[16 : 4 + size], rest[4 + size :]
        plain = AESGCM(KEY).decrypt(nonce, sealed, bound + len(found).to_bytes(8))
        found.append((plain[:1], plain[1:]))
    assert json.loads(line) == HEADER
    assert found == RECORDS


def test_no_payload_stands_in_the_file_and_no_nonce_twice(path: Path) -> None:
    journal = Journal.create(path, KEY, HEADER, RECORDS)
    for _ in range(50):
        journal.append(b"E", b"the same event, again and again")
    journal.close()
    content = path.read_bytes()
    assert b"the same event" not in content
    assert b"body" not in content
    begins = starts(content)[:-1]
    assert len({content[begin + 4 : begin + 16] for begin in begins}) == len(begins) == 53


@pytest.mark.parametrize(
    "size", [0, 1, CHUNK_SIZE - 1, CHUNK_SIZE, CHUNK_SIZE + 1, 2 * CHUNK_SIZE + 5]
)
def test_a_payload_of_any_size_comes_back_whole(path: Path, size: int) -> None:
    payload = bytes(index % 251 for index in range(size))
    written(path, [(b"B", payload), (b"E", b"after")])
    records = read(path)
    assert b"".join(part for tag, part in records if tag == b"B") == payload
    assert records[-1] == (b"E", b"after")
    assert max(len(part) for _, part in records) <= CHUNK_SIZE


def test_a_record_torn_off_at_any_byte_counts_as_never_written(path: Path) -> None:
    content = written(path)
    begins = starts(content)
    for cut in range(begins[0], len(content) + 1):
        path.write_bytes(content[:cut])
        whole = sum(end <= cut for end in begins[1:])
        journal, records = Journal.open(path, KEY)
        assert records == RECORDS[:whole]
        journal.append(b"E", b"went on")
        journal.close()
        assert read(path) == [*RECORDS[:whole], (b"E", b"went on")]


def test_a_first_line_torn_off_at_any_byte_is_no_journal(path: Path) -> None:
    content = written(path)
    for cut in range(starts(content)[0]):
        path.write_bytes(content[:cut])
        with pytest.raises(StateError):
            read(path)
        with pytest.raises(StateError):
            read_header(path)


@pytest.mark.parametrize("bit", [0x01, 0x80, 0xFF])
def test_a_flipped_byte_is_detected_wherever_it_is(path: Path, bit: int) -> None:
    """Where it makes a record longer than the file, that record is as good as torn off; nothing is
    ever changed.
    """
    content = written(path)
    begins = starts(content)
    for place in range(len(content)):
        path.write_bytes(flipped(content, place, bit))
        struck = sum(begin <= place for begin in begins[:-1]) - 1
        if struck >= 0 and place < begins[struck] + 4 and _is_longer(path, begins[struck]):
            assert read(path) == RECORDS[:struck]
        else:
            with pytest.raises(StateError) as caught:
                read(path)
            assert caught.value.remedy


def _is_longer(path: Path, begin: int) -> bool:
    content = path.read_bytes()
    return begin + 4 + int.from_bytes(content[begin : begin + 4]) > len(content)


def _records(content: bytes) -> tuple[bytes, list[bytes]]:
    begins = starts(content)
    return content[: begins[0]], [content[a:b] for a, b in pairwise(begins)]


SHUFFLED: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "two records in the other order": lambda records: [records[1], records[0], records[2]],
    "the first record dropped": lambda records: records[1:],
    "a record in the middle dropped": lambda records: [records[0], records[2]],
    "a record twice": lambda records: [records[0], *records],
    "the last record twice": lambda records: [*records, records[2]],
    "a record of nothing": lambda records: [records[0], bytes(4), *records[1:]],
    "a record of zeros": lambda records: [*records, bytes([0, 0, 0, 40]) + bytes(40)],
}


@pytest.mark.parametrize("name", SHUFFLED)
def test_records_cannot_be_moved_within_a_file(path: Path, name: str) -> None:
    line, records = _records(written(path))
    path.write_bytes(line + b"".join(SHUFFLED[name](records)))
    with pytest.raises(StateError):
        read(path)


def test_records_cannot_be_carried_into_another_file(path: Path, tmp_path: Path) -> None:
    line, records = _records(written(path))
    other_line, other_records = _records(written(tmp_path / "other", id="ba9876543210"))
    for place in range(len(records)):
        mixed = [*records[:place], other_records[place], *records[place + 1 :]]
        path.write_bytes(line + b"".join(mixed))
        with pytest.raises(StateError):
            read(path)
    path.write_bytes(other_line + b"".join(records))
    with pytest.raises(StateError):
        read(path)


def test_another_key_opens_nothing_and_the_error_tells_nothing(path: Path) -> None:
    written(path)
    with pytest.raises(StateError) as caught:
        read(path, OTHER)
    assert caught.value.__cause__ is None
    assert "meta" not in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"[]\n", b"no JSON\n", b"{}", b"{" * 100_000 + b"\n", b"\xff\n"]
)
def test_a_file_that_is_not_a_journal_is_reported(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(StateError, match="not an outbox entry"):
        read(path)


def test_one_process_at_a_time(path: Path) -> None:
    journal = Journal.create(path, KEY, HEADER, RECORDS)
    with pytest.raises(BlockingIOError):
        Journal.open(path, KEY)
    journal.close()
    journal.close()
    again, _ = Journal.open(path, KEY)
    with pytest.raises(BlockingIOError):
        Journal.open(path, KEY)
    del again
    assert read(path) == RECORDS, "a journal that nobody holds any more is let go of"


def test_a_journal_is_never_written_over_another_file(path: Path, tmp_path: Path) -> None:
    path.write_text("precious")
    with pytest.raises(FileExistsError):
        Journal.create(path, KEY, HEADER, RECORDS)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        Journal.create(link, KEY, HEADER, RECORDS)
    assert path.read_text() == "precious"
    assert sorted(found.name for found in tmp_path.iterdir()) == ["journal", "link"]


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from([b"M", b"B", b"E"]), st.binary(max_size=300))), st.data())
def test_created_appended_and_reopened_in_any_way_all_records_are_there(
    tmp_path_factory: pytest.TempPathFactory,
    records: list[tuple[bytes, bytes]],
    data: st.DataObject,
) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal"
    first = data.draw(st.integers(0, len(records)))
    journal = Journal.create(path, KEY, HEADER, records[:first])
    for tag, payload in records[first:]:
        if data.draw(st.booleans()):
            journal.close()
            journal, _ = Journal.open(path, KEY)
        journal.append(tag, payload)
    journal.close()
    assert read(path) == records
