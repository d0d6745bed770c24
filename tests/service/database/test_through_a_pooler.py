"""PostgreSQL through pgbouncer, which gives a connection to each transaction: nothing that lasts
longer can be relied on.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from sealpipe_service.database import migrating
from sealpipe_service.database.access import InFlightError
from sealpipe_service.database.opening import open_database
from service.database.processes import race
from service.database.stores import World, digest
from support.clusters import Cluster
from support.parts import program

CONNECTIONS = 3
SETTINGS = """
[databases]
* = host={server} user=tests
[pgbouncer]
pool_mode = transaction
default_pool_size = {connections}
unix_socket_dir = {folder}
listen_port = 6432
listen_addr =
auth_type = any
"""


@pytest.fixture(params=["postgresql"])
def through(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of an empty database, through a pooler of few connections."""
    cluster: Cluster = request.getfixturevalue("cluster")
    address = cluster.address("empty")
    server = address.partition("host=")[2].partition("&")[0]
    with tempfile.TemporaryDirectory(prefix="pgb-", ignore_cleanup_errors=True) as folder:
        settings = Path(folder) / "settings.ini"
        settings.write_text(SETTINGS.format(server=server, folder=folder, connections=CONNECTIONS))
        # It refuses to run as root.
        user: dict[str, Any] = {}
        if os.geteuid() == 0:
            user = {"user": "postgres", "group": "postgres", "extra_groups": []}
            for path in (folder, settings):
                shutil.chown(path, "postgres", "postgres")
        with subprocess.Popen(
            [program("pgbouncer"), "-q", str(settings)], stderr=subprocess.DEVNULL, **user
        ) as pooler:
            for _ in range(300):
                if (Path(folder) / ".s.PGSQL.6432").exists():
                    break
                time.sleep(0.05)
            yield address.replace(f"host={server}", f"host={folder}&port=6432")
            pooler.terminate()


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
