"""A copy of a database is whole, its owner's alone, and shows no password."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sealpipe_service.database import backing_up, migrating
from sealpipe_service.database.access import DatabaseError
from service.database.stores import World
from support.clusters import Cluster
from support.parts import find_postgres


def address_of(where: str) -> str:
    return where if where.startswith("postgresql:") else f"sqlite:///{where}"


def test_a_copy_has_what_was_stored(
    address: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(address)
    world.share("key", title="kept")
    copy = tmp_path / "copy"
    if address.startswith("postgresql:"):
        monkeypatch.setenv("PATH", str(find_postgres()), prepend=":")
    backing_up.backup(address_of(address), copy)  # while it is open
    world.store.close()
    assert copy.stat().st_mode & 0o777 == 0o600
    if address.startswith("postgresql:"):
        cluster: Cluster = request.getfixturevalue("cluster")
        restored = cluster.address("empty")
        words = [find_postgres() / "pg_restore", "--clean", "--if-exists", "-d", restored, copy]
        subprocess.run(words, check=True)
    else:
        restored = str(copy)
    again = World(restored)
    assert again.counted() == (1, 0)
    assert again.share("key")  # a replay
    assert again.counted() == (1, 0)
    again.store.close()


def test_a_file_that_is_there_stays_and_one_that_is_not_finished_goes(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = f"sqlite:///{tmp_path}/service.db"
    migrating.make(made)
    there = tmp_path / "there"
    there.write_text("mine")
    with pytest.raises(DatabaseError, match="File exists"):
        backing_up.backup(made, there)
    assert there.read_text() == "mine"
    dump = tmp_path / "pg_dump"
    dump.write_text(
        '#!/bin/sh\necho half; env > $0.environment; echo "$@" >> $0.environment\n'
        'cp "$PGPASSFILE" $0.passwords; exit 1\n'
    )
    dump.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("DBURL", "postgresql://ann:canary@h/d")
    address = cluster.address().replace("&user=tests", "&user=tests&password=canary:\\")
    with pytest.raises(DatabaseError, match=r"PostgreSQL .* pg_dump failed"):
        backing_up.backup(address, tmp_path / "half")
    assert not (tmp_path / "half").exists()
    assert "canary" not in (tmp_path / "pg_dump.environment").read_text()
    assert (tmp_path / "pg_dump.passwords").read_text() == "*:*:*:*:canary\\:\\\\\n"


def test_without_pg_dump_it_says_so(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DatabaseError, match="pg_dump is not installed"):
        backing_up.backup(cluster.address(), tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
