"""The batches of a database, and which credential opens each.

The key check, and sealing anew when a key is rotated.
"""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from sealpipe.api.operation import Credential
from sealpipe.api.responses import escape_text
from sealpipe.batch.database import statements as sql
from sealpipe.batch.database.interface import Database, Transaction, Values, check_types
from sealpipe.batch.database.records import (
    BATCH,
    Batch,
    OpenBatch,
    make_conflict_error,
)
from sealpipe.batch.database.rotation import TABLES, add_seed, seal_table_anew
from sealpipe.batch.database.sealing import (
    BatchSealer,
    Cell,
    IdMaker,
    Members,
    make_batch_id,
    make_damage_error,
)
from sealpipe.errors import StateError


class BatchKeyring:
    """The batches of one service that a credential opens, or during a rotation its predecessor."""

    def __init__(
        self,
        database: Database,
        salt: bytes,
        credential: Credential,
        previous: Credential | None,
        service: str,
    ) -> None:
        self.credential = credential
        self.service = service
        self._database = database
        self._salt = salt
        self._previous = previous
        self._opened: dict[str, OpenBatch] = {}

    def get(self, batch_id: str) -> OpenBatch:
        """Return what opens a batch.

        Raises StateError as `find_batch`, ConflictError if it is gone.
        """
        opened = self._opened.get(batch_id)
        if opened is None:
            found = self._database.read(sql.FIND_BATCH, batch=batch_id)
            if not found:
                raise make_conflict_error("part")  # it was purged
            self._open(found[0])
            opened = self._opened[batch_id]
        return opened

    @contextmanager
    def write(self, batch_id: str, *, exclusive: bool = False) -> Iterator[Transaction]:
        """Begin a transaction if the batch is still sealed to this credential."""
        opened = self.get(batch_id)
        with self._database.transaction(batch_id, exclusive=exclusive) as transaction:
            found = transaction.run(sql.CHECK_BATCH, batch=batch_id)
            if not found or found[0][2] != opened.created_at:
                self._opened.pop(batch_id, None)
                raise make_conflict_error("part")  # it was purged, and may have been added again
            if not _is_same(found[0][1], opened.sealer.key_check):
                raise self._make_key_error(str(found[0][0]))
            yield transaction

    def find_batch(self, name: str) -> Batch | None:
        """See `BatchStore.find_batch`."""
        found = self._database.read(sql.FIND_BATCH, batch=make_batch_id(self._salt, name))
        if not found:
            return None
        batch = self._open(found[0])
        if batch.service != self.service:
            raise StateError(
                (
                    f"the batch {name} belongs to the service at {batch.service}, not to "
                    f"{self.service}: nothing was done"
                ),
                remedy="set SEALPIPE_BASE_URL to that service, or name this batch differently",
            )
        return batch

    def add_batch(self, name: str, content: Members, now: int) -> Batch:
        """See `BatchStore.add_batch`."""
        batch_id = make_batch_id(self._salt, name)
        opened = OpenBatch(BatchSealer(self.credential, batch_id), IdMaker.create(), now)
        with self._database.transaction(batch_id) as transaction:
            transaction.run(
                sql.ADD_BATCH,
                batch=batch_id,
                key_id=self.credential.key_id,
                key_check=opened.sealer.key_check,
                now=now,
                blob=self._seal(opened, 1, name, content),
            )
        batch = self.find_batch(name)
        if batch is None:
            raise make_conflict_error("batch")  # it was purged at this moment
        return batch

    def list_batches(self) -> list[Batch]:
        """See `BatchStore.list_batches`."""
        found = [
            each
            for each in self._database.read(sql.LIST_BATCHES)
            if self._find_owner(each) is not None
        ]
        batches = [self._open(values) for values in found]
        return sorted(
            (each for each in batches if each.service == self.service), key=lambda batch: batch.name
        )

    def count_others(self) -> Counter[str]:
        """See `BatchStore.count_others`."""
        found = self._database.read(sql.LIST_BATCHES)
        return Counter(
            escape_text(values[1], 60) for values in found if self._find_owner(values) is None
        )

    def save_batch(self, batch: Batch, content: Members) -> Batch:
        """See `BatchStore.save_batch`."""
        opened, version = self.get(batch.id), batch.version + 1
        with self.write(batch.id) as transaction:
            if not transaction.run(
                sql.SAVE_BATCH,
                batch=batch.id,
                version=batch.version,
                blob=self._seal(opened, version, batch.name, content),
            ):
                raise make_conflict_error("batch")
        return Batch(
            batch.id, batch.name, batch.service, batch.key_id, batch.created_at, version, content
        )

    def _seal(self, opened: OpenBatch, version: int, name: str, content: Members) -> bytes:
        members = {
            "name": name,
            "service": self.service,
            "ids": opened.ids.dump(),
            "content": content,
        }
        return opened.sealer.seal(_make_batch_cell(version), members)

    def _find_owner(self, values: Values) -> Credential | None:
        """Return which of our credentials a batch is sealed to."""
        batch_id, _, key_check, *_ = check_types(values, "tttiib")
        for credential in (self.credential, self._previous):
            if credential is not None and _is_same(
                key_check, BatchSealer(credential, batch_id).key_check
            ):
                return credential
        return None

    def _open(self, values: Values) -> Batch:
        owner, batch_id = self._find_owner(values), values[0]
        if owner is None:
            raise self._make_key_error(values[1])
        if owner is not self.credential:
            self._seal_anew(batch_id, owner)
            found = self._database.read(sql.FIND_BATCH, batch=batch_id)
            if not found or self._find_owner(found[0]) is not self.credential:
                raise make_conflict_error("batch")
            values = found[0]
        _, key_id, _, created_at, version, blob = values
        members = BatchSealer(self.credential, batch_id).open(_make_batch_cell(version), blob)
        ids = IdMaker.load(members.get("ids"))
        name, service, content = members.get("name"), members.get("service"), members.get("content")
        if (
            not isinstance(name, str)
            or not isinstance(service, str)
            or not isinstance(content, dict)
        ):
            raise make_damage_error()
        if make_batch_id(self._salt, name) != batch_id:
            raise make_damage_error()
        self._opened[batch_id] = OpenBatch(BatchSealer(self.credential, batch_id), ids, created_at)
        return Batch(batch_id, name, service, key_id, created_at, version, content)

    def _seal_anew(self, batch_id: str, owner: Credential) -> None:
        """Seal everything of a batch to the new credential, with keys that only the old derives."""
        old, new = BatchSealer(owner, batch_id), BatchSealer(self.credential, batch_id)
        with self._database.transaction(batch_id, exclusive=True) as transaction:
            found = transaction.run(sql.FIND_BATCH, batch=batch_id)
            if not found or not _is_same(found[0][2], old.key_check):
                return  # another worker was faster
            *_, version, blob = check_types(found[0], "tttiib")
            cell = _make_batch_cell(version)
            members = old.open(cell, blob)
            keep_seed = partial(add_seed, owner, str(members.get("name")))
            for table in TABLES:
                seal_table_anew(transaction, batch_id, table, old, new, keep_seed)
            transaction.run(
                sql.RESEAL_BATCH,
                batch=batch_id,
                key_id=self.credential.key_id,
                key_check=new.key_check,
                blob=new.seal(cell, members),
            )

    def _make_key_error(self, key_id: str) -> StateError:
        return StateError(
            f"the batch belongs to the API key {escape_text(key_id, 60)}, not to "
            f"{self.credential.key_id}: "
            "nothing was done",
            remedy="set SEALPIPE_API_KEY to the credential that created it; after a rotation, set "
            "SEALPIPE_API_KEY_PREVIOUS to the old one, and the new one takes over",
        )


def _make_batch_cell(version: int) -> Cell:
    return Cell("", BATCH, version)


def _is_same(key_check: object, expected: str) -> bool:
    return isinstance(key_check, str) and hmac.compare_digest(key_check.encode(), expected.encode())
