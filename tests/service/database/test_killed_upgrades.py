"""An upgrade that is killed in its middle: the tables are the old ones or the new ones, with all
their rows, and the next upgrade completes it.

The upgrade is that of a next release, which does not exist: a copy of the service with one more
version, which kills its own process at a moment that is named in its environment.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import sealpipe_service
from sealpipe_service.database import migrating, versions
from sealpipe_service.database.access import SchemaError
from sealpipe_service.database.opening import check, open_database, read_version
from service.database.stores import World, run_text
from support.clusters import Cluster

NEXT = "0002"
BEFORE_THE_END = ("begun", "a table", "a column", "a row", "an index", "committing")
KILLED = -signal.SIGKILL

VERSION = """
import os
import signal

import sqlalchemy as sa
from alembic import op

revision = "NEXT"
down_revision = "PRESENT"


def upgrade() -> None:
    at("begun")
    op.create_table("later", sa.Column("name", sa.Text(), nullable=False))
    at("a table")
    op.add_column("shares", sa.Column("added", sa.Text(), nullable=True))
    at("a column")
    op.execute("INSERT INTO later (name) VALUES ('first')")
    at("a row")
    op.create_index("later_by_name", "later", ["name"])
    at("an index")
    engine = op.get_bind().engine
    sa.event.listen(engine, "commit", lambda _: at("committing"))
    sa.event.listen(engine.pool, "close", lambda *_: at("committed"))


def at(moment):
    if os.environ.get("KILLED_AT") == moment:
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the next release is."""
    folder = tmp_path_factory.mktemp("release")
    package = folder / "sealpipe_service"
    shutil.copytree(
        Path(str(sealpipe_service.__file__)).parent,
        package,
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    (package / "database/migrations/versions" / f"v{NEXT}.py").write_text(
        VERSION.replace("NEXT", NEXT).replace("PRESENT", versions.VERSION)
    )
    known = package / "database/versions.py"
    text = known.read_text()
    assert text.count(f'VERSION = "{versions.VERSION}"') == 1
    known.write_text(text.replace(f'VERSION = "{versions.VERSION}"', f'VERSION = "{NEXT}"'))
    return folder


@pytest.fixture(params=["sqlite", "postgresql"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database of this version."""
    if request.param == "sqlite":
        address = f"sqlite:///{tmp_path}/service.db"
    else:
        cluster: Cluster = request.getfixturevalue("cluster")
        address = cluster.address("empty")
    migrating.make(address)
    return address


FORKING = """
import importlib
import json
import os
import sys

for name in ("sealpipe.cli.server.database", "sealpipe_service.database.migrating", "psycopg"):
    importlib.import_module(name)
from sealpipe.__main__ import main

for line in sys.stdin:
    sys.argv[1:], environ = json.loads(line)
    reading, writing = os.pipe()
    command = os.fork()
    if not command:
        os.dup2(writing, 2)
        os.environ.update(environ)
        main()
        os._exit(0)
    os.close(writing)
    with open(reading) as told:
        said = told.read()
    code = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
    print(json.dumps([code, said]), flush=True)
"""
"""Commands of the next release, forked from a process that has imported what they need."""

Run = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def run(release: Path) -> Iterator[Run]:
    """Run a `sealpipe server database` command of the next release: its code, and what it said."""
    words = [sys.executable, "-c", FORKING]
    environ = {**os.environ, "PYTHONPATH": str(release)}
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, env=environ) as forking:

        def run(address: str, name: str, killed_at: str = "") -> tuple[int, str]:
            assert forking.stdin is not None
            assert forking.stdout is not None
            command = ["server", "database", name, "--database", "env:DBURL"]
            told = json.dumps([command, {"DBURL": address, "KILLED_AT": killed_at}])
            print(told, file=forking.stdin, flush=True)
            code, said = json.loads(forking.stdout.readline())
            return code, said

        yield run
        assert forking.stdin is not None
        forking.stdin.close()


def test_a_killed_upgrade_leaves_the_old_tables_or_the_new_ones(made: str, run: Run) -> None:
    place = made.removeprefix("sqlite:///")
    world = World(place)
    kept, ended = world.share(access_counts_left=2), world.share()
    request = world.request()
    assert world.key()
    assert world.delete(ended)
    assert world.submit(request)

    def is_whole() -> bool:
        """All rows are there, and the service goes on with them."""
        again = World(place)
        try:
            rows = again.store.list_keys(), again.store.submissions(number)
            return again.counted() == (1, 1) and [len(each) for each in rows] == [1, 1]
        finally:
            again.store.close()

    number = world.request_row(request)["number"]
    world.store.close()
    for moment in BEFORE_THE_END:
        assert run(made, "upgrade", moment)[0] == KILLED, moment
        assert read_version(made) == versions.VERSION, moment
        check(made)  # this release goes on
        assert is_whole()
        with pytest.raises(Exception, match="later"):
            run_text(place, "SELECT * FROM later")
    code, said = run(made, "check")
    assert (code, "run `sealpipe server database upgrade`" in said) == (2, True), said
    assert run(made, "upgrade", "committed")[0] == KILLED
    assert read_version(made) == NEXT, "it was completed, and what is committed stays"
    with pytest.raises(SchemaError, match=f"knows only {versions.VERSION}"):
        check(made)
    for name in ("check", "upgrade"):
        assert run(made, name)[0] == 0
    run_text(place, "INSERT INTO later SELECT added FROM shares WHERE added IS NOT NULL")
    if made.startswith("postgresql:"):  # a process of this release that was started before
        store = open_database(made, is_checked=True)
        store.close()
        world = World(place)
        assert world.open(kept).reason is None
        world.store.close()
