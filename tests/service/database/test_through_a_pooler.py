"""PostgreSQL through pgbouncer, which gives a connection to each transaction: nothing that lasts
longer can be relied on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from sealpipe_service.database import migrating
from sealpipe_service.database.access import InFlightError
from sealpipe_service.database.opening import open_database
from service.database.processes import race
from service.database.stores import World, digest
from support.clusters import Cluster
from support.pooler import CONNECTIONS, pooled


@pytest.fixture(params=["postgresql"])
def through(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of an empty database, through a pooler of few connections."""
    cluster: Cluster = request.getfixturevalue("cluster")
    with pooled(cluster.address("empty")) as address:
        yield address


def test_the_tables_are_made_and_every_decision_is_one(through: str) -> None:
    migrating.make(through)
    open_database(through).close()
    with closing((world := World(through)).store):
        code = world.share(access_counts_left=1)
        assert Counter(race(through, "opened", code, 13)) == {"opened": 1, "views": 51}
        done = Counter(race(through, "created", "key", 4))
        del done["in flight"]
        assert len(done) == 1
        assert Counter(race(through, "taken", "k" * 16, 20)) == {True: 60, False: 20}
        assert Counter(race(through, "keyed", "-", 4)) == {True: 2, "QuotaError": 14}
        assert world.counted() == (1, 1)


def test_nothing_is_left_on_a_connection_that_others_get(through: str) -> None:
    migrating.make(through)
    with closing((world := World(through)).store):
        with world.store.claim("k" * 16, "key", digest("body")):
            with pytest.raises(InFlightError):
                world.share("key")
            world.store.take("k" * 16, 60, world.clock.now)
        world.share("key")
    asked = ("synchronous_commit", "statement_timeout", "idle_in_transaction_session_timeout")
    with psycopg.connect(through, autocommit=True, prepare_threshold=None) as connection:
        for _ in range(2 * CONNECTIONS):
            found = [connection.execute(f"SHOW {name}").fetchone() for name in asked]
            assert found == [("on",), ("0",), ("0",)]
        (locks,) = connection.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
        ).fetchone() or (None,)
    assert locks == 0
