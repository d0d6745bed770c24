"""The embedded database's file: private, for one runner, and refused where it is not ours or
damaged.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from sealpipe.batch.database.opening import open_database
from sealpipe.batch.database.sqlite import FILE_NAME
from sealpipe.errors import StateError
from unit.batch.stores import Place, SqlitePlace, add_rows

_LOCKING = """
import sys
from pathlib import Path
from sealpipe.batch.database.opening import open_database
with open_database(Path(sys.argv[1])).lock_runner():
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def folder(in_sqlite: Place) -> Path:
    assert isinstance(in_sqlite, SqlitePlace)
    return in_sqlite.folder


def test_every_file_is_private_whatever_the_umask(in_sqlite: Place, folder: Path) -> None:
    before = os.umask(0)
    try:
        store = in_sqlite.store()
        add_rows(store, 10)
        with store.lock_runner():
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}
    finally:
        os.umask(before)
    suffixes = ("", "-shm", "-wal")
    assert modes == {f"{FILE_NAME}{each}": 0o600 for each in suffixes} | {"batches.lock": 0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_file_that_others_could_read_is_made_private(in_sqlite: Place, folder: Path) -> None:
    in_sqlite.store()
    in_sqlite.close()
    (folder / FILE_NAME).chmod(0o644)
    in_sqlite.store()
    assert stat.S_IMODE((folder / FILE_NAME).stat().st_mode) == 0o600


def test_a_link_in_its_place_is_refused(folder: Path, tmp_path: Path) -> None:
    folder.mkdir(mode=0o700)
    target = tmp_path / "elsewhere"
    target.touch()
    (folder / FILE_NAME).symlink_to(target)
    with pytest.raises(StateError, match="is not a file of this user"):
        open_database(folder)
    assert target.read_bytes() == b""


def test_one_process_runs_and_others_can_read_and_write(in_sqlite: Place, folder: Path) -> None:
    store = in_sqlite.store()
    with subprocess.Popen(
        [sys.executable, "-P", "-c", _LOCKING, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as runner:
        assert runner.stdout is not None
        assert runner.stdout.readline() == b"locked\n"
        with (
            pytest.raises(StateError, match="another `sealpipe batch run`") as refused,
            store.lock_runner(),
        ):
            pass
        assert "PostgreSQL" in refused.value.remedy
        assert store.count_states(add_rows(store, 3)) == {"new": 3}
        runner.kill()
    with store.lock_runner():
        pass


def test_a_damaged_file_is_refused_with_what_to_do(in_sqlite: Place, folder: Path) -> None:
    add_rows(in_sqlite.store(), 500)
    in_sqlite.close()
    file = folder / FILE_NAME
    content = file.read_bytes()
    for damaged in (b"not a database" * 1000, content[:4096] + b"\xff" * 8192 + content[12288:]):
        file.write_bytes(damaged)
        with pytest.raises(StateError, match=r"cannot be used|changed by something") as refused:
            add_rows(in_sqlite.store(), 600)
        assert "adopt" in refused.value.remedy
        in_sqlite.close()


def test_an_old_sqlite_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    with pytest.raises(StateError, match=r"needs? 3\.38 or newer"):
        open_database(folder)
