"""What commands call: run a file, or open a batch by its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sealpipe.batch.database.store import BatchStore
from sealpipe.batch.engine.actions import find_row, serving_hands
from sealpipe.batch.engine.adopt import Adopted, adopt_rows
from sealpipe.batch.engine.advance import Change, Engine
from sealpipe.batch.engine.high_water import ADOPTED_AT, check_high_water, note_high_water
from sealpipe.batch.engine.looks import Extent, choose_looks
from sealpipe.batch.engine.loop import Task
from sealpipe.batch.engine.notify import check_allowed, notify
from sealpipe.batch.engine.plan import ALLOWED_STEPS, BatchPlan, check_approved
from sealpipe.batch.engine.rated_transport import RatedTransport
from sealpipe.batch.engine.run import Runner, RunResult
from sealpipe.batch.engine.sync import make_plan, restore_definition, sync
from sealpipe.batch.file.definition import BatchDefinition
from sealpipe.batch.file.mistakes import suggest_name
from sealpipe.errors import UsageError, quote_input
from sealpipe.session import Session


def open_engine(session: Session, store: BatchStore, name: str) -> Engine:
    """Open a batch by its name, as its database holds it.

    Raises UsageError if there is none, StateError.
    """
    batch = store.find_batch(name)
    if batch is None:
        known = [each.name for each in store.list_batches()]
        remedy = (
            suggest_name(name, known, "the batches are")
            if known
            else "`sealpipe batch run FILE` makes one"
        )
        raise UsageError(
            f"there is no batch {quote_input(name)} in the {store.description}", remedy=remedy
        )
    rated = session.with_transport(RatedTransport(session.transport, store.rate))
    return Engine(rated, store, batch, restore_definition(batch))


def run_batch(
    session: Session,
    store: BatchStore,
    definition: BatchDefinition,
    *,
    seconds: float | None = None,
    only: Sequence[str] = (),
    approved: BatchPlan | None = None,
    looks: Extent = "scheduled",
    threads: int | None = None,
    on_change: Callable[[Change], object] = lambda _: None,
) -> RunResult:
    """Make the world agree with a file: do what is due, until nothing is, or for so many `seconds`.

    `only` names rows; `approved` is a plan, of which exactly the actions are done. `looks` says
    which waiting rows are looked at though they are not due: all, or those that were not looked at
    for half a minute, within a tenth of the rate. Raises UsageError and StateError, before anything
    is sent.
    """
    transport = RatedTransport(session.transport, store.rate)
    rated = session.with_transport(transport)
    with store.lock_runner():
        check_allowed(session, definition.name)
        check_high_water(store, store.find_batch(definition.name))
        if approved is not None:
            check_approved(approved, make_plan(store, definition, session.base_url))
        synced = sync(store, definition)
        batch = synced.batch
        engine = Engine(rated, store, batch, restore_definition(batch))
        tasks = _make_tasks(engine, only, approved)
        chosen = choose_looks(engine, only, looks)
        runner = Runner(
            engine,
            seconds=seconds,
            tasks=tasks,
            looks=chosen.rows,
            threads=threads,
            on_change=on_change,
        )
        with serving_hands(
            store, lambda each: Engine(rated, store, each, restore_definition(each))
        ):
            result = runner.run()
        result.calls, result.unseen = transport.calls, chosen.left
        result.warnings += (*synced.list_warnings(), *notify(engine))
        note_high_water(store, batch)
        return result


def adopt(session: Session, store: BatchStore, definition: BatchDefinition) -> list[Adopted]:
    """Find a file's requests again after its database was lost or restored.

    Nothing is created or sent.

    Raises UsageError and StateError.
    """
    with store.lock_runner():
        batch = sync(store, definition).batch
        adopted = list(adopt_rows(open_engine(session, store, batch.name)))
        saved = store.save_batch(batch, {**batch.content, ADOPTED_AT: store.now()})
        note_high_water(store, saved, is_adopted=True)
        return adopted


def _make_tasks(
    engine: Engine, only: Sequence[str], approved: BatchPlan | None
) -> list[Task] | None:
    """Return the rows to take; None for all that are due."""
    if approved is None and not only:
        return None
    named = dict.fromkeys(find_row(engine, key).id for key in only)
    if approved is None:
        return [Task(row_id) for row_id in named]
    actions = {find_row(engine, row.key).id: row.action for row in approved.approvable}
    return [
        Task(row_id, ALLOWED_STEPS[action])
        for row_id, action in actions.items()
        if not named or row_id in named
    ]
