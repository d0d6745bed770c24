"""Kills of a run in the process of the tests: between any two things that it does to the world or
to its database.

A kill raises `Killed`, and from then on nothing leaves any more: whatever cleans up meanwhile finds
neither service, channel nor database, as if the process were gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cli.batch.world import BatchWorld
from sealpipe.api.operation import Response
from sealpipe.batch.database.interface import Database, Transaction


class Killed(BaseException):
    """The process is gone. Nobody handles it."""


class KillSwitch:
    """Counts the steps of what a world's machine does, and kills it at step `at` (0: never)."""

    def __init__(self, at: int = 0) -> None:
        self.at = at
        self.steps: list[str] = []
        self._is_dead = False

    def step(self, name: str) -> None:
        if self._is_dead:
            raise Killed
        self.steps.append(name)
        if len(self.steps) == self.at:
            self._is_dead = True
            raise Killed

    @contextmanager
    def watching(self, world: BatchWorld) -> Iterator[None]:
        """Count what happens in the block; a kill ends it."""

        def before(operation: Any) -> None:
            self.step(f"before {operation.method} {operation.path}")

        def after(operation: Any, response: Response) -> Response:
            self.step(f"after {operation.method} {operation.path}")
            return response

        def sending(what: str) -> Callable[[str], None]:
            return lambda to: self.step(f"{what} {to}")

        world.before, world.after = before, after  # type: ignore[method-assign]
        world.loft.before, world.loft.after = (
            sending("before the plugin"),
            sending("after the plugin"),
        )
        database = world.store._database
        plain = database.transaction
        database.transaction = self._counting(database)  # type: ignore[method-assign]
        try:
            yield
        except Killed:
            pass
        finally:
            database.transaction = plain  # type: ignore[method-assign]
            del world.before, world.after
            world.loft.before = world.loft.after = lambda _: None

    def _counting(self, database: Database) -> Callable[..., Any]:
        plain = database.transaction

        @contextmanager
        def transaction(batch: str = "", *, exclusive: bool = False) -> Iterator[Transaction]:
            # The rate's own transactions have no batch: what is lost there is the order of calls.
            if not batch:
                if self._is_dead:
                    raise Killed
                with plain(batch, exclusive=exclusive) as running:
                    yield running
                return
            self.step("before a write")
            with plain(batch, exclusive=exclusive) as running:
                yield running
            self.step("after a write")  # what waits for the next one is lost

        return transaction
