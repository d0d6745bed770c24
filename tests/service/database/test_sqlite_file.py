"""The file of a database on SQLite, and what is beside it."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sealpipe_service.database.sqlite import DatabaseFileError, Sqlite
from service.database.processes import start
from service.database.stores import HOUR, World


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "service.db"


def test_a_killed_process_leaves_no_file_that_stays(file: Path) -> None:
    world = World(str(file))
    with start(str(file), "held", "key") as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        holder.send_signal(signal.SIGKILL)
    assert world.share("key")
    assert len(list(file.parent.glob("*-owner-*"))) == 1
    world.store.close()
    assert list(file.parent.glob("*-owner-*")) == []  # neither of the killed one nor of this one


def test_another_programs_database_is_left_as_it_is(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE a (b)")
    before = file.read_bytes()
    with pytest.raises(DatabaseFileError, match="another program"):
        Sqlite(file)
    assert file.read_bytes() == before


def test_file_and_journal_are_its_owners_alone_and_keep_no_ciphertext(file: Path) -> None:
    with closing(World(str(file)).store) as store, closing(World(str(file)).store):
        world = World(str(file))
        code = world.share(access_counts_left=1, data="canary" * 500)
        assert b"canary" in b"".join(path.read_bytes() for path in file.parent.iterdir())
        world.open(code)
        world.clock.pass_by(HOUR)
        world.store.sweep()
        assert {path.stat().st_mode & 0o777 for path in file.parent.iterdir()} == {0o600}
        assert b"canary" not in b"".join(path.read_bytes() for path in file.parent.iterdir())
        assert store.share_at_link(code)[1] == "views"
        world.store.close()
