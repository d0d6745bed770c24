"""A sealed journal: a 0600 file of encrypted records that grows by appending.

Layout: one line of plain JSON (what must be known before the rest can be opened, never a secret),
then records. A record is 4 bytes of length, 12 bytes of random nonce, and AES-256-GCM of one tag
byte and the payload; the associated data are the SHA-256 of the first line and the record's number,
so that no record can be moved, dropped from the middle or copied into another file. A record that a
kill truncated at the end counts as never written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import GCM
from cryptography.hazmat.primitives.hashes import SHA256, Hash

from sealpipe.api.operation import Credential
from sealpipe.errors import StateError
from sealpipe.state.files import create_locked_file, open_at_once, open_locked_file, write_all
from sealpipe.wire import tokens

CHUNK_SIZE = 1024 * 1024
"""Maximum payload bytes per record: large payloads are split, so that sealing them needs no second
copy.
"""

_LENGTH, _NONCE, _TAG = 4, 12, 16
_MAX_SEALED = _NONCE + 1 + CHUNK_SIZE + _TAG + 1
_MAX_HEADER = 64 * 1024
Record = tuple[bytes, bytes | memoryview]
"""One tag byte, and the payload."""


class Journal:
    """An open journal, locked by this process until `close()`.

    It cannot be copied, because its lock cannot be.
    """

    _descriptor = -1

    def __init__(self, descriptor: int, sealer: _Sealer, count: int, end: int) -> None:
        self._descriptor = descriptor
        self._sealer = sealer
        self._count = count
        self._end = end

    @classmethod
    def create(
        cls, path: Path, key: bytes, header: Mapping[str, object], records: Iterable[Record]
    ) -> Journal:
        """Create a journal, complete and on disk before this returns.

        `key` is 32 bytes. Raises OSError.
        """
        line = json.dumps(header, separators=(",", ":")).encode() + b"\n"
        sealer = _Sealer(key, line)
        count = 0

        def pieces() -> Iterator[bytes | memoryview]:
            nonlocal count
            yield line
            for count, (tag, payload) in enumerate(_split_records(records), start=1):
                yield sealer.seal(count - 1, tag, payload)

        descriptor = create_locked_file(path, pieces)
        return cls(descriptor, sealer, count, os.lseek(descriptor, 0, os.SEEK_END))

    @classmethod
    def open(cls, path: Path, key: bytes) -> tuple[Journal, list[tuple[bytes, bytes]]]:
        """Open an existing journal, and return it with its complete records.

        Raises BlockingIOError if another process has it open, OSError if it cannot be read,
        StateError if it is not a journal or the key does not open it.
        """
        descriptor = open_locked_file(path)
        try:
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                sealer, records, end = _read_records(file, key, path.stem)
        except BaseException:
            os.close(descriptor)
            raise
        return cls(descriptor, sealer, len(records), end), records

    @staticmethod
    def read(path: Path, key: bytes) -> list[tuple[bytes, bytes]]:
        """Return the complete records of a journal, also if another process has it open.

        Raises as `open`.
        """
        with open_at_once(path) as file:
            return _read_records(file, key, path.stem)[1]

    def append(self, tag: bytes, payload: bytes) -> None:
        """Append one record, on disk before this returns. Raises OSError."""
        # A record truncated by a kill, or by a full disk just now, is overwritten.
        os.ftruncate(self._descriptor, self._end)
        os.lseek(self._descriptor, self._end, os.SEEK_SET)
        record = self._sealer.seal(self._count, tag, payload)
        write_all(self._descriptor, record)
        os.fsync(self._descriptor)
        self._count += 1
        self._end += len(record)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("an open journal is not copied or pickled")

    def __del__(self) -> None:
        # A cancelled call drops its entry: the lock must not outlive it.
        self.close()

    def close(self) -> None:
        """Close the file and release its lock."""
        # First, so that an interruption cannot close it twice.
        descriptor, self._descriptor = (
            self._descriptor,
            -1,
        )
        if descriptor >= 0:
            os.close(descriptor)


def derive_key(credential: Credential, salt: bytes, info: bytes, size: int) -> bytes:
    """Derive a key of `size` bytes for state that only this credential opens."""
    parts = [credential.auth_secret.reveal()]
    if credential.custody_secret is not None:
        # The custody part is never sent, so even the service, which sees the first two parts,
        # cannot open the state.
        parts.append(credential.custody_secret.reveal())
    return tokens.hkdf(".".join(parts).encode(), salt, info, size)


def read_header(path: Path) -> dict[str, Any]:
    """Read the plain first line.

    Raises StateError if the file is not a journal, OSError if it cannot be read.
    """
    with open_at_once(path) as file:
        return _parse_header(file.readline(_MAX_HEADER))


class _Sealer:
    def __init__(self, key: bytes, line: bytes) -> None:
        self._key = key
        digest = Hash(SHA256())
        digest.update(line)
        self._header_digest = digest.finalize()
        self._buffer = memoryview(b"")

    def seal(self, number: int, tag: bytes, payload: bytes | memoryview) -> memoryview:
        """Return a record as written. All records share one buffer: the next call overwrites it."""
        body = _LENGTH + _NONCE
        end = body + len(tag) + len(payload) + _TAG
        if len(self._buffer) < end:
            self._buffer = memoryview(bytearray(end))
        nonce = os.urandom(_NONCE)
        encryptor = Cipher(AES256(self._key), GCM(nonce)).encryptor()
        encryptor.authenticate_additional_data(self._make_associated_data(number))
        self._buffer[:body] = (end - _LENGTH).to_bytes(_LENGTH) + nonce
        # The library needs a block of space after the data: that of the authentication tag.
        encryptor.update_into(tag, self._buffer[body:])
        encryptor.update_into(payload, self._buffer[body + len(tag) :])
        encryptor.finalize()
        self._buffer[end - _TAG : end] = encryptor.tag
        return self._buffer[:end]

    def open(self, number: int, sealed: bytes, entry_id: str) -> tuple[bytes, bytes]:
        try:
            plain = AESGCM(self._key).decrypt(
                sealed[:_NONCE], sealed[_NONCE:], self._make_associated_data(number)
            )
        except (InvalidTag, ValueError):
            raise StateError(
                (
                    f"outbox entry {entry_id} cannot be decrypted with this credential, or was "
                    "modified"
                ),
                remedy="use the credential that created it, or discard it with "
                f"`sealpipe resume {entry_id} --discard`",
            ) from None
        return plain[:1], plain[1:]

    def _make_associated_data(self, number: int) -> bytes:
        return self._header_digest + number.to_bytes(8)


def _read_records(
    file: BinaryIO, key: bytes, entry_id: str
) -> tuple[_Sealer, list[tuple[bytes, bytes]], int]:
    """Return the sealer, all complete records, and the position where the last one ends."""
    line = file.readline(_MAX_HEADER)
    _parse_header(line)
    sealer = _Sealer(key, line)
    records: list[tuple[bytes, bytes]] = []
    end = len(line)
    while True:
        head = file.read(_LENGTH)
        length = int.from_bytes(head)
        # A longer record cannot be opened, and must not use memory.
        length = min(length, _MAX_SEALED)
        sealed = file.read(length)
        if len(head) < _LENGTH or len(sealed) < length:
            return sealer, records, end
        records.append(sealer.open(len(records), sealed, entry_id))
        end += _LENGTH + length


def _split_records(records: Iterable[Record]) -> Iterator[Record]:
    for tag, payload in records:
        view = memoryview(payload)
        for start in range(0, max(len(view), 1), CHUNK_SIZE):
            yield tag, view[start : start + CHUNK_SIZE]


def _parse_header(line: bytes) -> dict[str, Any]:
    try:
        header = json.loads(line) if line.endswith(b"\n") else None
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise StateError(
            "a file in the outbox is not an outbox entry", remedy="inspect it, and move it away"
        )
    return header
