"""What rows do to the world, each once.

`intent`, then `sending` by compare-and-set, then `done` or `failed`.

Whoever begins an effect has it on disk before it acts, and is the only one. An effect that is left
at `sending` may have happened: only what can find out, or may be repeated, goes on with it. A batch
has effects of its own, too: those of `make_batch_row`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from sealpipe.batch.database import statements as sql
from sealpipe.batch.database.interface import Database, Transaction, check_types
from sealpipe.batch.database.keyring import BatchKeyring
from sealpipe.batch.database.merging import RowWriter
from sealpipe.batch.database.queue import RowQueue
from sealpipe.batch.database.records import (
    ConflictError,
    Effect,
    EffectState,
    Row,
    make_conflict_error,
    make_effect_cell,
    make_effect_content,
)
from sealpipe.batch.database.sealing import Members
from sealpipe.cancellation import current


class EffectStore:
    """The effects of rows: part of a `BatchStore`. `clock` returns the database's time."""

    def __init__(
        self,
        database: Database,
        keyring: BatchKeyring,
        queue: RowQueue,
        writer: RowWriter,
        clock: Callable[[], int],
    ) -> None:
        self._database = database
        self._queue = queue
        self._keyring = keyring
        self._writer = writer
        self._clock = clock

    def find(self, row: Row, name: str) -> Effect | None:
        """Return the effect of this name; None if there is none."""
        self._writer.flush(row.batch, row.id)
        opened = self._keyring.get(row.batch)
        effect_id = opened.ids.make_effect_id(row.id, name)
        found = self._keyring.read(
            opened.load_effect, sql.FIND_EFFECT, batch=row.batch, row=row.id, effect=effect_id
        )
        return found[0] if found else None

    def list(self, row: Row) -> list[Effect]:
        """Return every effect of a row, by the time of its last change."""
        self._writer.flush(row.batch, row.id)
        opened = self._keyring.get(row.batch)
        return self._keyring.read(opened.load_effect, sql.LIST_EFFECTS, batch=row.batch, row=row.id)

    def intend(self, row: Row, name: str, content: Members) -> Effect:
        """Record what is to be done as `intent`, or return the effect that exists already."""
        with self._writer.write(row.batch, row.id) as transaction:
            self._check_row(transaction, row)
            return self._add(transaction, row, name, "intent", content) or self._find(
                transaction, row, name
            )

    def begin(self, row: Row, name: str, content: Members) -> Effect | None:
        """Take the effect from nothing, `intent` or `failed` to `sending`: it is ours alone.

        None: it is `sending` or `done`, so do not act. Raises ConflictError if another worker has
        the row, or has changed it.
        """
        current().raise_if_cancelled()
        with self._writer.write(row.batch, row.id) as transaction:
            self._check_row(transaction, row)
            effect = self._add(transaction, row, name, "sending", content)
            if effect is not None:
                return effect
            found = self._find(transaction, row, name)
            if found.state not in ("intent", "failed"):
                return None
            effect, work = self._change(found, "sending", content)
            try:
                work(transaction)
            except ConflictError:
                return None
            return effect

    def record(self, row: Row, name: str, content: Members) -> Effect:
        """Record something as `done`, or return the effect that exists already."""
        with self._writer.write(row.batch, row.id) as transaction:
            return self._add(transaction, row, name, "done", content) or self._find(
                transaction, row, name
            )

    def repeat(self, row: Row, effect: Effect, content: Members) -> Effect:
        """Do an effect again that may or will be repeated: `sending`, from any state.

        Raises ConflictError as `begin`, and if the effect has changed.
        """
        current().raise_if_cancelled()
        changed, work = self._change(effect, "sending", content)
        with self._writer.write(row.batch, row.id) as transaction:
            self._check_row(transaction, row)
            work(transaction)
        return changed

    def finish(
        self,
        effect: Effect,
        state: Literal["done", "failed"],
        content: Members,
        *,
        may_wait: bool = False,
    ) -> Effect:
        """Record the outcome: it happened, or certainly did not.

        Raises ConflictError if it has changed.

        With `may_wait`, that of what may be repeated is recorded with the row's next write
        (`BatchStore.merge_writes`).
        """
        return self._save(effect, state, content, may_wait=may_wait)

    def amend(self, effect: Effect, content: Members, *, may_wait: bool = False) -> Effect:
        """Replace the content, in the same state.

        Raises ConflictError if it has changed. `may_wait`: as above.
        """
        return self._save(effect, effect.state, content, may_wait=may_wait)

    def remove(self, effect: Effect) -> bool:
        """Forget an effect. Returns False if it has changed since it was read, or is gone."""
        with self._writer.write(effect.batch, effect.row) as transaction:
            return bool(
                transaction.run(
                    sql.REMOVE_EFFECT,
                    batch=effect.batch,
                    row=effect.row,
                    effect=effect.id,
                    version=effect.version,
                )
            )

    def find_intended(self) -> set[str]:
        """Return the ids of the batches, of any credential, that intend something themselves."""
        return {check_types(values, "t")[0] for values in self._database.read(sql.FIND_INTENDED)}

    def _save(
        self, effect: Effect, state: EffectState, content: Members, *, may_wait: bool = False
    ) -> Effect:
        changed, work = self._change(effect, state, content)
        if not (may_wait and self._writer.write_later(effect.batch, effect.row, work)):
            with self._writer.write(effect.batch, effect.row) as transaction:
                work(transaction)
        return changed

    def _add(
        self, transaction: Transaction, row: Row, name: str, state: EffectState, content: Members
    ) -> Effect | None:
        opened, now = self._keyring.get(row.batch), self._clock()
        effect_id = opened.ids.make_effect_id(row.id, name)
        blob = opened.sealer.seal(
            make_effect_cell(row.id, effect_id, state, 1), make_effect_content(name, content)
        )
        added = transaction.run(
            sql.ADD_EFFECT,
            batch=row.batch,
            row=row.id,
            effect=effect_id,
            state=state,
            now=now,
            blob=blob,
        )
        return Effect(row.batch, row.id, effect_id, state, now, 1, name, content) if added else None

    def _find(self, transaction: Transaction, row: Row, name: str) -> Effect:
        opened = self._keyring.get(row.batch)
        effect_id = opened.ids.make_effect_id(row.id, name)
        return opened.load_effect(
            transaction.run(sql.FIND_EFFECT, batch=row.batch, row=row.id, effect=effect_id)[0]
        )

    def _change(
        self, effect: Effect, state: EffectState, content: Members
    ) -> tuple[Effect, Callable[[Transaction], None]]:
        """Return the effect's next version, and its write: ConflictError if it has changed."""
        sealer, version = self._keyring.get(effect.batch).sealer, effect.version + 1
        at = effect.at if state == effect.state else self._clock()
        cell = make_effect_cell(effect.row, effect.id, state, version)

        def work(transaction: Transaction) -> None:
            if not transaction.run(
                sql.SAVE_EFFECT,
                batch=effect.batch,
                row=effect.row,
                effect=effect.id,
                version=effect.version,
                state=state,
                at=at,
                blob=sealer.seal(cell, make_effect_content(effect.name, content)),
            ):
                raise make_conflict_error("effect")

        return Effect(
            effect.batch, effect.row, effect.id, state, at, version, effect.name, content
        ), work

    def _check_row(self, transaction: Transaction, row: Row) -> None:
        """Raise ConflictError if another worker took or changed the row.

        This one was thought dead, or stood still.
        """
        if not row.id:  # a batch's own effect: the compare-and-set alone decides
            return
        known, found = row.hold or row, transaction.run(sql.CHECK_ROW, batch=row.batch, row=row.id)
        if found != [(known.version, known.generation)] or (
            row.hold is not None and not self._queue.check(transaction, row.hold.job)
        ):
            raise make_conflict_error()
