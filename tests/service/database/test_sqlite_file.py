"""The file of a database on SQLite, and what is beside it."""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from sealpipe_service.database import opening, sqlite
from sealpipe_service.database.access import UnavailableError
from sealpipe_service.database.claims import Claims
from sealpipe_service.database.decisions import Store
from sealpipe_service.database.sqlite import DatabaseFileError, Sqlite
from service.database.processes import start
from service.database.stores import HOUR, World, digest
from support.terminal import PATIENCE


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "service.db"


def kill_a_holder(file: Path) -> None:
    with start(str(file), "held", "key") as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        holder.send_signal(signal.SIGKILL)


def test_what_a_killed_process_held_is_free_at_once(file: Path) -> None:
    world = World(str(file))
    kill_a_holder(file)
    assert world.share("key")
    world.store.close()


def test_a_new_file_is_opened_once_another_process_has_made_its_own_of_it(file: Path) -> None:
    """SQLite waits for others, but not where it switches to its write-ahead log."""
    file.touch(0o600)
    with (
        closing(sqlite3.connect(file, isolation_level=None)) as other,
        ThreadPoolExecutor() as pool,
    ):
        other.execute("BEGIN IMMEDIATE")
        other.execute("CREATE TABLE unfinished (id)")
        opened = pool.submit(Sqlite, file)
        with pytest.raises(TimeoutError):
            opened.result(0.3)
        other.execute("ROLLBACK")
        opened.result(PATIENCE).close()


def test_claims_are_locks_of_one_empty_file_which_stays_its_owners_alone(file: Path) -> None:
    world = World(str(file))
    world.share("key")
    world.store.close()
    claims = file.with_name("service.db-claims")
    assert (claims.stat().st_size, claims.stat().st_mode & 0o777) == (0, 0o600)
    assert sorted(file.parent.iterdir()) == [file, claims]


def test_who_is_refused_one_claim_holds_no_other(file: Path) -> None:
    """Else a third call could not tell the same create from one with another body."""
    file.touch()
    claims = Claims(file)
    with claims.hold(5), claims.hold(5, 6) as held:
        assert held == 0
        with claims.hold(6, 5) as other:
            assert other == 1
    with claims.hold(5, 6) as held:
        assert held == 2
    claims.close()


def test_a_create_is_replayed_also_where_the_file_was_in_use_at_its_end(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.01)
    world = World(str(file))
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        with world.store.claim("k" * 16, "key", digest("body")):
            other.execute("BEGIN IMMEDIATE")  # as an upgrade does, or a long purge
        other.execute("ROLLBACK")
    world.store.scrub()
    assert world.share("key")
    world.store.close()


def test_on_a_full_disk_it_is_unavailable_and_nothing_is_half_done(file: Path) -> None:
    database = Sqlite(file)
    world = World()
    world.store = Store(database)
    (pages,) = database.run_text("PRAGMA page_count")
    database.run_text(f"PRAGMA max_page_count={pages[0] + 1}")
    with pytest.raises(UnavailableError, match="full"):
        world.share("key", data="x" * 100_000)
    assert world.counted() == (0, 0)
    database.run_text("PRAGMA max_page_count=100000")
    assert world.share("key", data="x" * 100_000)
    world.store.close()


def test_another_programs_database_is_left_as_it_is(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE a (b)")
    before = file.read_bytes()
    with pytest.raises(DatabaseFileError, match="another program"):
        Sqlite(file)
    assert file.read_bytes() == before


BESIDE = ("-wal", "-shm", "-journal", "-claims")


@pytest.mark.parametrize("end", ["", *BESIDE])
def test_a_link_is_no_database_and_no_journal_of_one(file: Path, end: str) -> None:
    address = f"sqlite:///{file}"
    if end:
        Sqlite(file).close()
    (file.parent / "planted").touch()
    file.with_name(file.name + end).symlink_to(file.parent / "planted")
    with pytest.raises(DatabaseFileError, match=f"service.db{end}: it is a link"):
        opening.check(address)
    with pytest.raises(DatabaseFileError):
        Sqlite(file)
    assert (file.parent / "planted").read_bytes() == b""


def test_a_file_of_another_user_is_refused_and_stays_as_it_is(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.touch(mode=0o644)
    before = file.stat()
    monkeypatch.setattr(os, "geteuid", lambda: before.st_uid + 1)
    for use in (lambda: Sqlite(file), lambda: opening.check(f"sqlite:///{file}")):
        with pytest.raises(DatabaseFileError, match="it belongs to another user"):
            use()
    assert (file.read_bytes(), file.stat().st_mode) == (b"", before.st_mode)


def test_a_file_whose_rights_cannot_be_changed_is_told(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(Path, "chmod", refuse)
    with pytest.raises(DatabaseFileError, match=r"service\.db: Operation not permitted"):
        Sqlite(file)


@pytest.mark.parametrize("end", BESIDE)
def test_a_journal_that_another_user_put_there_is_not_used(file: Path, end: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs to be root, to make a file of another user")
    Sqlite(file).close()
    planted = file.with_name(file.name + end)
    planted.touch()
    os.chown(planted, 65534, 65534)
    for use in (lambda: Sqlite(file), lambda: opening.check(f"sqlite:///{file}")):
        with pytest.raises(DatabaseFileError, match=f"{end}: it belongs to another user"):
            use()
    assert planted.read_bytes() == b""


def test_root_uses_the_file_of_a_user_with_the_journal_of_either(file: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs to be root")
    world = World(str(file))
    code = world.share()
    for each in file.parent.iterdir():
        os.chown(each, 65534, 65534)
    with closing(Sqlite(file)) as database:
        assert Store(database).share_at_link(code)[0] is not None
    world.store.close()


def test_file_and_journal_are_its_owners_alone_and_keep_no_ciphertext(file: Path) -> None:
    with closing(World(str(file)).store) as store, closing(World(str(file)).store):
        world = World(str(file))
        code = world.share(access_counts_left=1, data="canary" * 500)
        assert b"canary" in b"".join(path.read_bytes() for path in file.parent.iterdir())
        world.open(code)
        world.clock.pass_by(HOUR)
        world.store.sweep()
        world.store.scrub()
        assert {path.stat().st_mode & 0o777 for path in file.parent.iterdir()} == {0o600}
        assert b"canary" not in b"".join(path.read_bytes() for path in file.parent.iterdir())
        assert store.share_at_link(code)[1] == "views"
        world.store.close()
