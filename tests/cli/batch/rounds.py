"""A worker on an embedded database, played round by round."""

from __future__ import annotations

from cli.batch.world import BatchWorld
from sealpipe.batch.engine.worker import Worker


def make_worker(world: BatchWorld, changes: list[str] | None = None) -> Worker:
    noted = [] if changes is None else changes
    return Worker(
        world.session(),
        world.store,
        threads=1,
        on_change=lambda batch, change: noted.append(f"{batch.name}: {change.key}: {change.what}"),
    )


def do_round(worker: Worker) -> None:
    """One round of it, however long that takes."""
    worker._run_round(None, must_lock=True)
