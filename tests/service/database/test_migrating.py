"""The tables are made and upgraded by Alembic, and are then those of tables.py."""

from __future__ import annotations

import ast
import sqlite3
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from sealpipe_service.database import migrating, migrations, versions
from sealpipe_service.database.access import AddressError, SchemaError
from sealpipe_service.database.opening import check, describe, file_of, open_database
from sealpipe_service.database.postgresql import read_address
from sealpipe_service.database.sqlite import Sqlite
from service.database.stores import run_text
from support.clusters import Cluster
from support.parts import find_postgres

VERSIONS = Path(str(migrations.__file__)).parent / "versions"
ADDS = {"create_table", "create_index", "add_column", "execute", "f"}


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database without tables."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/service.db"
    cluster: Cluster = request.getfixturevalue("cluster")
    return cluster.address("empty")


@pytest.fixture
def made(empty: str) -> str:
    migrating.make(empty)
    return empty


def set_version(address: str, version: str) -> None:
    run_text(
        address.removeprefix("sqlite:///"),
        f"UPDATE service_version SET version_num = '{version}'",  # noqa: S608
    )


def test_this_programs_version_is_the_newest() -> None:
    config = Config()
    config.set_main_option("script_location", "sealpipe_service.database:migrations")
    script = ScriptDirectory.from_config(config)
    assert script.get_heads() == [versions.VERSION]
    assert sorted(each.revision for each in script.walk_revisions()) == sorted(
        file.stem.removeprefix("v") for file in VERSIONS.glob("v*.py")
    )


@pytest.mark.parametrize("file", sorted(VERSIONS.glob("v*.py")), ids=lambda file: file.stem)
def test_a_version_only_adds(file: Path) -> None:
    done = {
        node.attr
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "op"
    }
    assert done <= ADDS


def test_alembic_makes_the_tables_that_a_rehearsal_makes_without_it(tmp_path: Path) -> None:
    by_alembic, by_text = tmp_path / "alembic.db", tmp_path / "text.db"
    migrating.migrate(f"sqlite:///{by_alembic}")
    Sqlite(by_text).close()
    assert tables_of(by_alembic) == tables_of(by_text)


def tables_of(file: Path) -> dict[str, object]:
    """Columns of each table and index, and the conditions of both; and the rows that are there."""
    with closing(sqlite3.connect(file)) as connection:
        names = connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name")
        found: dict[str, object] = {
            name: (
                connection.execute(f"PRAGMA {type_}_xinfo({name})").fetchall(),
                sorted((text or "").replace(",", " ").replace("(", " ").replace(")", " ").split()),
            )
            for type_, name, text in names.fetchall()
        }
        for rows in ("SELECT * FROM clock", "SELECT * FROM service_version"):
            found[rows] = connection.execute(rows).fetchall()
    return found


def test_alembic_makes_the_tables_of_tables_py_in_postgresql(cluster: Cluster) -> None:
    by_alembic, by_core = cluster.address("empty"), cluster.address()
    migrating.make(by_alembic)
    assert dump(by_alembic) == dump(by_core)


def dump(address: str) -> list[str]:
    words = [find_postgres() / "pg_dump", "--no-comments", "--inserts", "-d", address]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    # Of a run's own: a token.
    return [line for line in done.stdout.splitlines() if "restrict" not in line]


def test_a_database_is_made_once_and_opened(empty: str) -> None:
    with pytest.raises(SchemaError, match="no tables of the service"):
        open_database(empty)
    assert migrating.upgrade(empty) == (None, versions.VERSION)
    assert migrating.upgrade(empty) == (versions.VERSION, versions.VERSION)
    with pytest.raises(SchemaError, match="already"):
        migrating.make(empty)
    open_database(empty).close()


def test_two_that_make_the_tables_at_once_take_turns(empty: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(migrating.upgrade, [empty] * 2))
    assert {after for _, after in done} == {versions.VERSION}
    check(empty)


@pytest.mark.parametrize(
    ("version", "reason", "remedy"),
    [
        ("0000", f"needs {versions.VERSION}", "run `sealpipe server database upgrade`"),
        ("9999", f"knows only {versions.VERSION}", "install the sealpipe that has upgraded it"),
    ],
)
def test_tables_of_another_version_are_refused(
    made: str, version: str, reason: str, remedy: str
) -> None:
    set_version(made, version)
    with pytest.raises(SchemaError, match=reason) as refused:
        open_database(made)
    assert refused.value.remedy == remedy
    with pytest.raises(SchemaError):
        migrating.upgrade(made)


def test_a_process_that_starts_again_during_an_upgrade_goes_on(cluster: Cluster) -> None:
    address = cluster.address("empty")
    migrating.make(address)
    set_version(address, "9999")
    open_database(address, is_checked=True).close()


def test_other_peoples_tables_stay_as_they_are(empty: str) -> None:
    run_text(empty.removeprefix("sqlite:///"), "CREATE TABLE shares (a INTEGER)")
    with pytest.raises(SchemaError, match=r"other tables|another program"):
        migrating.upgrade(empty)
    run_text(empty.removeprefix("sqlite:///"), "INSERT INTO shares VALUES (1)")
    with pytest.raises(SchemaError, match=r"no tables|another program"):
        check(empty)


@pytest.mark.parametrize(
    "address", ["", "sqlite:", "sqlite://", "sqlite:///", "mysql://h/d", "postgresql:///d", "/f.db"]
)
def test_what_is_no_address_is_told_without_showing_it(address: str) -> None:
    with pytest.raises(AddressError, match=r"^the address is none of a (SQLite|PostgreSQL)"):
        open_database(address)


@pytest.mark.parametrize("password", ["p@canary", "p/canary", "12/canary", "@canary", "p@@canary"])
def test_no_part_of_a_password_is_told_as_the_host_or_the_name(password: str) -> None:
    with pytest.raises(AddressError, match="an @, : or / where none belongs") as told:
        describe(f"postgresql://ann:{password}@db.example/app")
    assert "canary" not in str(told.value)


@pytest.mark.parametrize(
    ("address", "mode"),
    [
        ("postgresql://ann@127.0.0.1/app", None),
        ("postgresql://ann@127.0.0.1/app?hostaddr=192.0.2.1", "verify-full"),
        ("postgresql://ann@db.example/app", "verify-full"),
        ("postgresql://ann@db.example/app?sslmode=disable", "disable"),
    ],
)
def test_tls_is_verified_where_the_address_leads_over_a_network(
    address: str, mode: str | None
) -> None:
    assert read_address(address).get("sslmode") == mode


def test_where_the_environment_leads_elsewhere_it_counts_as_part_of_the_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    local = "postgresql://ann@localhost/app"
    monkeypatch.setenv("PGHOSTADDR", "192.0.2.1")  # libpq would go there
    assert read_address(local)["hostaddr"] == "192.0.2.1"
    assert read_address(local)["sslmode"] == "verify-full"
    assert read_address(f"{local}?hostaddr=127.0.0.1").get("sslmode") is None
    monkeypatch.setenv("PGHOSTADDR", "canary@192.0.2.1")
    with pytest.raises(AddressError, match="an @, : or / where none belongs"):
        read_address(local)
    monkeypatch.setenv("PGHOSTADDR", "")
    assert read_address(local).get("sslmode") is None


def test_a_database_is_described_without_user_and_password() -> None:
    told = describe("postgresql://ann:canary@db.example/app")
    assert told == "PostgreSQL database app at db.example"
    assert file_of("sqlite:////srv/app.db") == Path("/srv/app.db")
    assert file_of("sqlite:///app.db") == Path("app.db")
