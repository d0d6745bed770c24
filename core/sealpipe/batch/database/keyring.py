"""The batches of a database, and which credential opens each.

The key check, the data keys, and what happens when either key is replaced.
"""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TypeVar

from sealpipe.api.operation import Credential
from sealpipe.api.responses import escape_text
from sealpipe.batch.database import statements as sql
from sealpipe.batch.database.data_keys import (
    DataKeys,
    make_key_error,
    read_again,
    unwrap_data_keys,
)
from sealpipe.batch.database.interface import Database, Transaction, Values, check_types
from sealpipe.batch.database.records import (
    BATCH,
    Batch,
    ConflictError,
    OpenBatch,
    make_conflict_error,
)
from sealpipe.batch.database.rotation import (
    OTHER_TABLES,
    ROWS,
    Convert,
    add_seed,
    keep_all,
    seal_table_anew,
)
from sealpipe.batch.database.sealing import (
    Cell,
    CredentialOpener,
    DataKey,
    IdMaker,
    KeyWrapper,
    Members,
    Opener,
    make_batch_id,
    make_damage_error,
)
from sealpipe.errors import StateError

T = TypeVar("T")
_Owner = KeyWrapper | CredentialOpener
"""What opens a batch of this schema, or of schema 1."""


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
        self._data_keys: dict[tuple[str, int], DataKeys] = {}
        """By batch and when it was added: all threads have the same ones."""

    def get(self, batch_id: str) -> OpenBatch:
        """Return what opens a batch.

        Raises StateError as `find_batch`, ConflictError if it is gone.
        """
        opened = self._opened.get(batch_id)
        if opened is None:
            if self._find(batch_id) is None:
                raise make_conflict_error("part")  # it was purged
            opened = self._opened[batch_id]
        return opened

    def read(self, load: Callable[[Values], T], statement: str, **parameters: object) -> list[T]:
        """Run a query, and open what it gives by `load`, one of an `OpenBatch`."""
        return read_again(
            lambda: [load(values) for values in self._database.read(statement, **parameters)]
        )

    @contextmanager
    def write(self, batch_id: str, *, exclusive: bool = False) -> Iterator[Transaction]:
        """Begin a transaction if the batch is still sealed to this credential."""
        opened = self.get(batch_id)
        with self._database.transaction(batch_id, exclusive=exclusive) as transaction:
            found = transaction.run(sql.CHECK_BATCH, batch=batch_id)
            if not found or found[0][2] != opened.created_at:
                self._opened.pop(batch_id, None)
                raise make_conflict_error("part")  # it was purged, and may have been added again
            if not _is_same(found[0][1], opened.wrapper.key_check):
                raise make_key_error(str(found[0][0]), self.credential.key_id)
            opened.sealer.use_newest(found[0][3])
            yield transaction

    def find_batch(self, name: str) -> Batch | None:
        """See `BatchStore.find_batch`."""
        batch = self._find(make_batch_id(self._salt, name))
        if batch is None:
            return None
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
        wrapper, key = KeyWrapper(self.credential, batch_id), DataKey.create(batch_id, now)
        members = self._make_members(IdMaker.create(), name, content)
        with self._database.transaction(batch_id) as transaction:
            if transaction.run(
                sql.ADD_BATCH,
                batch=batch_id,
                key_id=self.credential.key_id,
                key_check=wrapper.key_check,
                now=now,
                blob=key.seal(_make_batch_cell(1), members),
            ):
                _replace_data_keys(transaction, batch_id, wrapper, [key])
        batch = self.find_batch(name)
        if batch is None:
            raise make_conflict_error("batch")  # it was purged at this moment
        return batch

    def list_batches(self) -> list[Batch]:
        """See `BatchStore.list_batches`."""
        batches = read_again(self._list)
        return sorted(
            (each for each in batches if each.service == self.service), key=lambda batch: batch.name
        )

    def _list(self) -> list[Batch]:
        found = self._database.read(sql.LIST_BATCHES)
        batches = []
        for values in found:
            if self._find_owner(values) is not None:
                with suppress(ConflictError):  # it was purged at this moment
                    batches.append(self._open(values))
        return batches

    def _find(self, batch_id: str) -> Batch | None:
        found = self.read(self._open, sql.FIND_BATCH, batch=batch_id)
        return found[0] if found else None

    def count_others(self) -> Counter[str]:
        """See `BatchStore.count_others`."""
        found = self._database.read(sql.LIST_BATCHES)
        return Counter(
            escape_text(values[1], 60) for values in found if self._find_owner(values) is None
        )

    def save_batch(self, batch: Batch, content: Members) -> Batch:
        """See `BatchStore.save_batch`."""
        version = batch.version + 1
        with self.write(batch.id) as transaction:
            opened = self.get(batch.id)  # inside: another thread may have opened a new one before
            members = self._make_members(opened.ids, batch.name, content)
            if not transaction.run(
                sql.SAVE_BATCH,
                batch=batch.id,
                version=batch.version,
                blob=opened.sealer.seal(_make_batch_cell(version), members),
            ):
                raise make_conflict_error("batch")
        return Batch(
            batch.id, batch.name, batch.service, batch.key_id, batch.created_at, version, content
        )

    def rekey(self, batch: Batch) -> None:
        """See `BatchStore.rekey`."""
        opened = self.get(batch.id)
        with self.write(batch.id, exclusive=True) as transaction:
            found = transaction.run(sql.FIND_DATA_KEYS, batch=batch.id)
            new = self._create_data_key(batch.id, unwrap_data_keys(opened.wrapper, found))
            for table in (ROWS, *OTHER_TABLES):
                seal_table_anew(transaction, batch.id, table, opened.sealer, new)
            (values,) = transaction.run(sql.FIND_BATCH, batch=batch.id)
            _seal_batch_anew(transaction, values, opened.sealer, new, opened.wrapper)
            _replace_data_keys(transaction, batch.id, opened.wrapper, [new])

    def _make_members(self, ids: IdMaker, name: str, content: Members) -> Members:
        return {"name": name, "service": self.service, "ids": ids.dump(), "content": content}

    def _create_data_key(self, batch_id: str, older: Iterable[DataKey]) -> DataKey:
        """Make the newest data key, also if the clock was set back."""
        last = max((each.created_at for each in older), default=0)
        return DataKey.create(batch_id, max(self._database.read_clock(), last + 1))

    def _find_owner(self, values: Values) -> _Owner | None:
        """Return what opens a batch: one of our credentials, in this schema or in the first."""
        batch_id, _, key_check, *_ = check_types(values, "tttiib")
        for credential in filter(None, (self.credential, self._previous)):
            for kind in (KeyWrapper, CredentialOpener):
                owner: _Owner = kind(credential, batch_id)
                if _is_same(key_check, owner.key_check):
                    return owner
        return None

    def _is_ours(self, owner: _Owner | None) -> bool:
        return isinstance(owner, KeyWrapper) and owner.credential is self.credential

    def _open(self, values: Values) -> Batch:
        owner, batch_id = self._find_owner(values), values[0]
        if owner is None:
            raise make_key_error(values[1], self.credential.key_id)
        if not self._is_ours(owner):
            self._take_over(batch_id, owner)
        opened = self._opened.get(batch_id)
        if opened is None or opened.created_at != values[3]:
            wrapper = KeyWrapper(self.credential, batch_id)
            keys = self._data_keys.setdefault(
                (batch_id, values[3]), DataKeys(partial(self._read_data_keys, wrapper, batch_id))
            )
            keys.load()
            # Read after the data keys: the one that it names is among them, or newer.
            found, created_at = self._database.read(sql.FIND_BATCH, batch=batch_id), values[3]
            if (
                not found
                or not self._is_ours(self._find_owner(found[0]))
                or found[0][3] != created_at
            ):
                raise make_conflict_error("batch")
            values = found[0]
        else:
            wrapper, keys = opened.wrapper, opened.sealer
        _, key_id, _, created_at, version, blob = values
        members = keys.open(_make_batch_cell(version), blob)
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
        self._opened[batch_id] = OpenBatch(keys, ids, created_at, wrapper)
        return Batch(batch_id, name, service, key_id, created_at, version, content)

    def _read_data_keys(self, wrapper: KeyWrapper, batch_id: str) -> list[DataKey]:
        return unwrap_data_keys(wrapper, self._database.read(sql.FIND_DATA_KEYS, batch=batch_id))

    def _take_over(self, batch_id: str, owner: _Owner) -> None:
        """Wrap the data keys of a batch anew under our credential, and begin a new one.

        Rows get the seeds that only the old credential derives. A batch of schema 1 has no data
        keys: all of it is sealed under its first.
        """
        wrapper = KeyWrapper(self.credential, batch_id)
        with self._database.transaction(batch_id, exclusive=True) as transaction:
            found = transaction.run(sql.FIND_BATCH, batch=batch_id)
            if not found or not _is_same(found[0][2], owner.key_check):
                return  # another worker was faster
            keys: list[DataKey] = []
            if isinstance(owner, KeyWrapper):
                keys = unwrap_data_keys(owner, transaction.run(sql.FIND_DATA_KEYS, batch=batch_id))
                old: Opener = DataKeys(lambda: keys)
            else:
                old = owner
            new = self._create_data_key(batch_id, keys)
            _replace_data_keys(transaction, batch_id, wrapper, [*keys, new])
            name = _seal_batch_anew(transaction, found[0], old, new, wrapper)
            convert: Convert = keep_all
            if owner.credential is not self.credential:
                convert = partial(add_seed, owner.credential, name)
            seal_table_anew(transaction, batch_id, ROWS, old, new, convert, only_changed=bool(keys))
            if not keys:
                for table in OTHER_TABLES:
                    seal_table_anew(transaction, batch_id, table, old, new)


def _make_batch_cell(version: int) -> Cell:
    return Cell("", BATCH, version)


def _is_same(key_check: object, expected: str) -> bool:
    return isinstance(key_check, str) and hmac.compare_digest(key_check.encode(), expected.encode())


def _replace_data_keys(
    transaction: Transaction, batch_id: str, wrapper: KeyWrapper, keys: Iterable[DataKey]
) -> None:
    """Let a batch have exactly these data keys, wrapped anew.

    A dump of an older schema that was restored leaves others there.
    """
    changes = [
        {
            "batch": batch_id,
            "id": key.id,
            "key_id": wrapper.credential.key_id,
            "created_at": key.created_at,
            "wrapped": wrapper.wrap(key),
        }
        for key in keys
    ]
    transaction.run(sql.REMOVE_DATA_KEYS, batch=batch_id)
    transaction.run_many(sql.ADD_DATA_KEY, changes)


def _seal_batch_anew(
    transaction: Transaction, values: Values, old: Opener, new: DataKey, wrapper: KeyWrapper
) -> str:
    """Seal a batch's own blob under a data key, and return its name."""
    batch_id, *_, version, blob = check_types(values, "tttiib")
    cell = _make_batch_cell(version)
    members = old.open(cell, blob)
    transaction.run(
        sql.RESEAL_BATCH,
        batch=batch_id,
        key_id=wrapper.credential.key_id,
        key_check=wrapper.key_check,
        blob=new.seal(cell, members),
    )
    return str(members.get("name"))
