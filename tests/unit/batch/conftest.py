"""Fixtures: an empty database of either kind; PostgreSQL is a real server, one for each worker of a
run.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.parts import Postgres, run_postgres
from unit.batch.stores import Place, PostgresPlace, SqlitePlace


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with run_postgres() as server:
        yield server


@pytest.fixture
def in_postgres(postgres: Postgres) -> Iterator[Place]:
    """An empty PostgreSQL database."""
    place = PostgresPlace(postgres)
    yield place
    place.close()


@pytest.fixture
def in_sqlite(tmp_path: Path) -> Iterator[Place]:
    """An empty state directory."""
    place = SqlitePlace(tmp_path / "state")
    yield place
    place.close()


@pytest.fixture(params=["in_sqlite", "in_postgres"])
def place(request: pytest.FixtureRequest) -> Place:
    """Both, one after the other."""
    found: Place = request.getfixturevalue(request.param)
    return found
