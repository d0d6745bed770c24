"""The store of batches: what the engine reads and writes, on either database, under one credential.

Rows and effects change by compare-and-set: whoever is slower gets a `ConflictError`, or None, and
does not act. Before anything of a batch is touched, its key check is: another credential changes
nothing. All that is ours is sealed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path

from sealpipe.api.operation import Credential
from sealpipe.batch.database import statements as sql
from sealpipe.batch.database.effects import EffectStore
from sealpipe.batch.database.history import History
from sealpipe.batch.database.interface import (
    Database,
    DatabaseUnavailableError,
    Transaction,
    check_types,
)
from sealpipe.batch.database.keyring import BatchKeyring
from sealpipe.batch.database.merging import RowWriter
from sealpipe.batch.database.queue import Job, RowQueue
from sealpipe.batch.database.rate import SharedRate
from sealpipe.batch.database.records import (
    Batch,
    Event,
    Hold,
    NewRow,
    Row,
    make_conflict_error,
    make_row_cell,
    make_row_content,
)
from sealpipe.batch.database.sealing import Members, make_rate_id
from sealpipe.errors import StateError

_PAGE = 500
"""Rows that are read at once."""


class BatchStore:
    """All batches of a database, as one credential sees them, for one service. Safe for threads.

    Times are microseconds by the database's clock. Every method raises StateError if the database
    cannot be used or was changed by hand, and DatabaseUnavailableError if it does not answer.
    """

    def __init__(self, database: Database, keyring: BatchKeyring, queue: RowQueue) -> None:
        self._database = database
        self._queue = queue
        self._keyring = keyring
        self._writer = RowWriter(keyring)
        self._damage: StateError | None = None
        self.clock_offset = 0
        """Microseconds that are added to the database's clock: for tests."""
        self.ledger_folder: Path | None = None
        """The ledgers of requests that other commands of this machine use: one command at a time
        ends a request.
        """
        self.marks_folder: Path | None = None
        """Where this machine notes how far it has seen each batch."""

    @property
    def description(self) -> str:
        """The database, for people."""
        return self._database.description

    @property
    def credential(self) -> Credential:
        """The credential that everything is sealed to."""
        return self._keyring.credential

    @cached_property
    def rate(self) -> SharedRate:
        """The rate of this credential at this service, shared by every worker."""
        return SharedRate(
            self._database, make_rate_id(self.credential, self._keyring.service), self.now
        )

    @cached_property
    def effects(self) -> EffectStore:
        """What rows do to the world, each once."""
        return EffectStore(self._database, self._keyring, self._queue, self._writer, self.now)

    @cached_property
    def history(self) -> History:
        """What happened to the rows of a batch, over all rows."""
        return History(self._database, self._keyring)

    def now(self) -> int:
        """Return the database's time."""
        return self._database.read_clock() + self.clock_offset

    @property
    def has_one_runner(self) -> bool:
        """Whether one process at a time runs batches: the database is a file of this machine."""
        return self._database.is_embedded

    def lock_runner(self) -> AbstractContextManager[None]:
        """Be the only runner of an embedded database.

        Raises StateError if another process is; PostgreSQL has many.
        """
        return self._database.lock_runner()

    def join_runner(self) -> AbstractContextManager[bool]:
        """Keep runners of an embedded database out meanwhile, and others who do.

        Yields False if there is one of them: then only that process works on rows.
        """
        return self._database.join_runner()

    def close(self) -> None:
        """Give back all rows, and close the database. It can be repeated."""
        self._queue.close()
        self._database.close()

    # -- batches

    def find_batch(self, name: str) -> Batch | None:
        """Open a batch by its name; None if there is none.

        Raises StateError if it belongs to another credential or service. What is the previous one's
        is taken over.
        """
        return self._keyring.find_batch(name)

    def add_batch(self, name: str, content: Members) -> Batch:
        """Add a batch; if there is one of this name, return it unchanged.

        Raises StateError as `find_batch`.
        """
        return self._keyring.add_batch(name, content, self.now())

    def list_batches(self) -> list[Batch]:
        """List this credential's batches at the service by name, claiming as `find_batch` does."""
        return self._keyring.list_batches()

    def count_others(self) -> Mapping[str, int]:
        """Count the batches of other credentials, by the id of their API key."""
        return self._keyring.count_others()

    def save_batch(self, batch: Batch, content: Members) -> Batch:
        """Replace a batch's content. Raises ConflictError if it has changed."""
        return self._keyring.save_batch(batch, content)

    def rekey(self, batch: Batch) -> None:
        """Seal everything of a batch under a new data key, and forget the others, all or nothing.

        With `lock_runner`: workers of PostgreSQL wait meanwhile.
        """
        self._keyring.rekey(batch)

    def purge_batch(self, batch: Batch) -> None:
        """Remove a batch with its rows, effects and history."""
        with self._keyring.write(batch.id, exclusive=True) as transaction:
            for statement in sql.PURGE:
                transaction.run(statement, batch=batch.id)
            self._queue.remove(transaction, batch.id)

    # -- rows

    def add_rows(self, batch: Batch, rows: Iterable[NewRow]) -> int:
        """Add the rows whose keys are not there yet, all or none; return how many were added."""
        now = self.now()
        with self._keyring.write(batch.id) as transaction:
            opened = self._keyring.get(batch.id)  # inside, as in `BatchKeyring.save_batch`
            parameters = (
                {
                    "batch": batch.id,
                    "row": (row := opened.ids.make_row_id(each.key)),
                    "state": str(each.state),
                    "due_at": each.due_at,
                    "now": now,
                    "blob": opened.sealer.seal(
                        make_row_cell(row, each.state, 1, 1),
                        make_row_content(each.key, each.content),
                    ),
                }
                for each in rows
            )
            added = transaction.run_many(sql.ADD_ROW, parameters)
            self._queue.add_due(transaction, [batch.id], now)
            return added

    def find_row(self, batch: Batch, key: str) -> Row | None:
        """Return the row with this key; None if there is none."""
        return self.read_row(batch, self._keyring.get(batch.id).ids.make_row_id(key))

    def read_row(self, batch: Batch, row_id: str) -> Row | None:
        """Return the row with this id; None if there is none."""
        self._writer.flush(batch.id, row_id)
        opened = self._keyring.get(batch.id)
        found = self._keyring.read(opened.load_row, sql.READ_ROW, batch=batch.id, row=row_id)
        return found[0] if found else None

    def list_rows(
        self,
        batch: Batch,
        *,
        states: Sequence[str] = (),
        due_by: int | None = None,
        after: str = "",
        contents: bool = False,
    ) -> Iterator[Row]:
        """Yield rows page by page: all, or those in these states, due by then, after this id.

        Ordered by id.

        Without `contents` no blob is loaded. Other calls may be made meanwhile.
        """
        opened = self._keyring.get(batch.id)
        statement, last = sql.LIST_CONTENTS if contents else sql.LIST_ROWS, after
        chosen = {
            "states": json.dumps([str(state) for state in states]),
            "all_states": int(not states),
        }
        while True:
            found = self._keyring.read(
                opened.load_row,
                statement,
                batch=batch.id,
                after=last,
                due_by=due_by,
                limit=_PAGE,
                **chosen,
            )
            yield from found
            if len(found) < _PAGE:
                return
            last = found[-1].id

    def count_states(self, batch: Batch) -> dict[str, int]:
        """Return the number of rows in each state."""
        found = self._database.read(sql.COUNT_ROWS, batch=batch.id)
        return dict(check_types(values, "wi") for values in found)

    def find_next_due(self, batch: Batch) -> int | None:
        """Return when the first row is due; None if none is due by itself.

        It may be one that somebody works on now.
        """
        (moment,) = check_types(self._database.read(sql.NEXT_DUE, batch=batch.id)[0], "n")
        return None if moment is None else int(moment)

    # -- rows in work

    def take_due(self, batches: Iterable[Batch]) -> Row | None:
        """Take a row of these batches that is due; None if there is none that nobody has.

        A row that was changed by hand stays taken, so that it does not stop the others. Raises
        StateError for it once, when there is no other.
        """
        by_id = {batch.id: batch for batch in batches}
        while (job := self._queue.take_due(list(by_id), self.now())) is not None:
            try:
                row = self._load(by_id[job.batch], job)
            except DatabaseUnavailableError:
                raise
            except StateError as error:
                self._damage = error
                continue
            if row is not None and row.due_at is not None and row.due_at <= self.now():
                return row
            self._give_back(job, None if row is None else row.due_at)
        damage, self._damage = self._damage, None
        if damage is not None:
            raise damage
        return None

    def take(self, batch: Batch, row_id: str) -> Row | None:
        """Take this row, due or not; None if somebody has it, or it is gone."""
        job = self._queue.take(batch.id, row_id)
        if job is None:
            return None
        row = None
        try:
            row = self._load(batch, job)
        finally:
            if row is None:
                self._give_back(job, None)
        return row

    @contextmanager
    def taking(self, batch: Batch, row_id: str) -> Iterator[Row | None]:
        """Work on this row in the block, as `take`."""
        row = self.take(batch, row_id)
        try:
            yield row
        finally:
            if row is not None:
                self.give_back(row)

    def give_back(self, row: Row) -> None:
        """Give back a row that was taken, unless it was given back when it was saved."""
        if row.hold is not None:
            self._give_back(row.hold.job, row.due_at)

    def reconcile(self, batches: Iterable[Batch], *, is_thorough: bool = True) -> None:
        """Let others go on with the rows of dead processes; give each due row a job that has none.

        A row and its job may be two transactions, and a clock may have been set. Without
        `is_thorough`, rows are looked through only if somebody has died.
        """
        if self._queue.free_dead() or is_thorough:
            with self._database.transaction() as transaction:
                self._queue.add_due(transaction, [batch.id for batch in batches], self.now())

    def _give_back(self, job: Job, due_at: int | None) -> None:
        with suppress(DatabaseUnavailableError):  # the queue does it with its next heartbeat
            self._queue.give_back(job, self._schedule(due_at))

    def _schedule(self, due_at: int | None) -> int | None:
        return None if due_at is None else due_at - self.clock_offset

    def _load(self, batch: Batch, job: Job) -> Row | None:
        """Read a row that was taken, as it is now."""
        try:
            row = self.read_row(batch, job.row)
        except DatabaseUnavailableError:
            self._queue.drop(job)
            raise
        return None if row is None else replace(row, hold=Hold(job, row.version, row.generation))

    def merge_writes(self, row: Row) -> AbstractContextManager[None]:
        """Write a row's outcomes that may wait with the next write, or at the end of the block.

        These are a saved row that is kept, the end of an effect that may be repeated, and what is
        amended.
        """
        return self._writer.merging(row)

    def save(
        self,
        row: Row,
        *,
        state: str,
        due_at: int | None,
        content: Members,
        generation: int | None = None,
        events: Sequence[Members] = (),
        keep: bool = False,
    ) -> Row:
        """Write a row's next version and history; give it back, unless `keep`.

        `due_at` None: nothing is due by itself. Raises ConflictError if another worker took or
        changed it. A row that is kept is written with its next write if they are merged.
        """
        opened, now = self._keyring.get(row.batch), self.now()
        state = str(state)
        saved = replace(
            row,
            state=state,
            due_at=due_at,
            since=row.since if state == row.state else now,
            version=row.version + 1,
            generation=row.generation if generation is None else generation,
            key=row.key or "",
            content=content,
        )

        job = None if row.hold is None else row.hold.job

        def write(transaction: Transaction) -> None:
            if not transaction.run(
                sql.SAVE_ROW,
                batch=row.batch,
                row=row.id,
                version=row.version,
                generation=row.generation,
                state=saved.state,
                due_at=due_at,
                since=saved.since,
                new_generation=saved.generation,
                blob=opened.seal_row(saved),
            ):
                raise make_conflict_error()
            if events:
                transaction.run_many(sql.ADD_EVENT, opened.seal_events(saved, events, now))
            if not keep and not self._queue.finish(
                transaction, row.batch, row.id, job, self._schedule(due_at)
            ):
                raise make_conflict_error()

        if not keep or not self._writer.write_later(row.batch, row.id, write):
            with self._writer.write(row.batch, row.id) as transaction:
                write(transaction)
        if row.hold is not None:
            row.hold.version, row.hold.generation = saved.version, saved.generation
        if job is not None and not keep:
            self._queue.drop(job)
        return saved

    def read_history(self, row: Row) -> list[Event]:
        """Return everything that happened to a row, oldest first."""
        opened = self._keyring.get(row.batch)
        load = partial(opened.load_event, row.id)
        return self._keyring.read(load, sql.READ_HISTORY, batch=row.batch, row=row.id)
