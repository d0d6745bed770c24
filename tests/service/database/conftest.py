"""Where the tests of this folder have their store: in SQLite, and once more in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.database.stores import World
from support.clusters import Cluster, run_cluster

BOTH = ("sqlite", "postgresql")


@pytest.fixture(scope="package")
def cluster() -> Iterator[Cluster]:
    with run_cluster() as cluster:
        yield cluster


@pytest.fixture(params=BOTH)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store is that other processes share."""
    if request.param == "sqlite":
        return str(tmp_path / "service.db")
    cluster: Cluster = request.getfixturevalue("cluster")
    return cluster.address()


@pytest.fixture
def shared(address: str) -> Iterator[World]:
    """That store."""
    world = World(address)
    yield world
    world.store.close()


@pytest.fixture(params=BOTH)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """A store that is this process's alone."""
    in_memory = request.param == "sqlite"
    world = World("" if in_memory else request.getfixturevalue("cluster").address())
    yield world
    world.store.close()
