"""The rehearsal on PostgreSQL, for `pytest tests/service --store postgresql`: the service is the
same, and what a rehearsal adds (faults, log, control) is in one process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

import sealpipe_rehearsal.server
import service.doors
from sealpipe_rehearsal.database import TABLES
from sealpipe_service.clock import system_clock
from sealpipe_service.database.access import Row
from sealpipe_service.database.postgresql import Postgresql
from support.clusters import Cluster, run_cluster


class _Row(dict[str, Any]):
    """A row by name or place, as SQLite's are."""

    def __getitem__(self, name: Any) -> Any:
        return list(self.values())[name] if isinstance(name, int) else super().__getitem__(name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values())


class RehearsalOnPostgresql(Postgresql):
    """What `RehearsalDatabase` is on SQLite."""

    def __init__(self, address: str, source: Callable[[], datetime]) -> None:
        super().__init__(address)
        self.source = source
        self._told: float | None = None
        self._direct = psycopg.connect(address, autocommit=True)

    def _transaction(self, begin: bytes) -> AbstractContextManager[Any]:
        if self.source is not system_clock and (now := self.source().timestamp()) != self._told:
            self._direct.execute("UPDATE clocks.moment SET at = %s", [now])
            self._told = now
        return super()._transaction(begin)

    def run_text(self, text: str, values: Mapping[str, object] | None = None) -> Sequence[Row]:
        own = re.sub(r"(?<![:\w]):(\w+)", r"%(\1)s", text.replace("%", "%%"))
        cursor = self._direct.execute(own.encode(), values or {})
        if cursor.description is None:
            return []
        names = [column.name for column in cursor.description]
        return [_Row(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def rows(self, text: str, values: Mapping[str, object]) -> Sequence[Row]:
        return self.run_text(text, values)

    def row(self, text: str, values: Mapping[str, object]) -> Row | None:
        return next(iter(self.run_text(text, values)), None)

    def offset(self) -> float:
        (row,) = self.run_text("SELECT offset_seconds FROM clock")
        return float(row["offset_seconds"])

    def set_offset(self, seconds: float) -> None:
        self.run_text("UPDATE clock SET offset_seconds = :seconds", {"seconds": seconds})

    def clear(self) -> None:
        """Empty the tables. What a server does meanwhile by itself takes them in another order."""
        try:
            self.run_text(f"TRUNCATE {', '.join(TABLES)}")
        except psycopg.errors.DeadlockDetected:
            self.clear()

    def connections(self) -> Sequence[Any]:
        return ()

    def close(self) -> None:
        super().close()
        self._direct.close()


@contextmanager
def rehearse_on_postgresql() -> Iterator[None]:
    """Let each rehearsal of this process have a database in PostgreSQL; one with a state file has
    the same as that had before.
    """
    with run_cluster() as cluster, pytest.MonkeyPatch.context() as patch:
        made: dict[Path, str] = {}

        def make(
            path: Path | None = None, source: Callable[[], datetime] = system_clock
        ) -> RehearsalOnPostgresql:
            address = _address(cluster, made, path)
            return RehearsalOnPostgresql(address, source)

        patch.setattr(sealpipe_rehearsal.server, "RehearsalDatabase", make)
        patch.setattr(service.doors, "RehearsalDatabase", make)
        yield


def _address(cluster: Cluster, made: dict[Path, str], path: Path | None) -> str:
    if path is None:
        return cluster.address()
    if path not in made:
        made[path] = cluster.address()
    return made[path]
