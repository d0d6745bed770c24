"""procrastinate's tables: made, noted, and brought to the installed version by its migrations."""

from __future__ import annotations

from pathlib import Path

import pytest
from procrastinate.schema import SchemaManager
from procrastinate.sql import queries

from sealpipe.batch.database import queue_tables
from sealpipe.batch.database.opening import prepare_tables
from sealpipe.errors import StateError
from unit.batch.stores import Place

NOTED = "SELECT value FROM sealpipe_meta WHERE name = 'procrastinate'"
TOLD = "SELECT obj_description(CAST('procrastinate_jobs' AS regclass))"
LAST = "03.04.00_50_post_add_retry_failed_job_procedure.sql"


@pytest.fixture
def migrations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the migrations of the next versions of procrastinate."""
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / LAST).write_text("SELECT 1/0;  -- it was applied before")
    monkeypatch.setattr(SchemaManager, "get_migrations_path", staticmethod(lambda: str(folder)))
    return folder


def note(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(
        f"COMMENT ON TABLE procrastinate_jobs IS '{text}';\n"
        "DO $$ BEGIN PERFORM '100 % {of} :it'; END; $$;\n"
    )


def read(place: Place, statement: str) -> object:
    return place.database().read(statement)[0][0]


def test_the_last_migration_of_the_oldest_version_is_known() -> None:
    """Earlier releases of sealpipe noted none, and took procrastinate 3.10 only."""
    assert queue_tables._FIRST == LAST
    assert LAST in [each.name for each in Path(SchemaManager.get_migrations_path()).iterdir()]


def test_the_statements_of_the_queue_are_those_of_the_installed_version() -> None:
    assert "FROM procrastinate_fetch_job_v2(" in queries["fetch_job"]
    assert "procrastinate_register_worker_v1" in queries["register_worker"]


def test_newer_migrations_are_applied_in_their_order_and_once(
    in_postgres: Place, migrations: Path
) -> None:
    prepare_tables(in_postgres.database())
    assert read(in_postgres, NOTED) == LAST
    note(migrations, "04.00.00_50_post_b.sql", "the second")
    note(migrations, "04.00.00_01_pre_a.sql", "the first")
    prepare_tables(in_postgres.database())
    assert read(in_postgres, NOTED) == "04.00.00_50_post_b.sql"
    assert read(in_postgres, TOLD) == "the second"
    note(migrations, "04.00.00_50_post_b.sql", "the second, again")
    prepare_tables(in_postgres.database())
    assert read(in_postgres, TOLD) == "the second"


def test_tables_of_an_earlier_sealpipe_get_what_is_newer(
    in_postgres: Place, migrations: Path
) -> None:
    prepare_tables(in_postgres.database())
    in_postgres.change("DELETE FROM sealpipe_meta WHERE name = 'procrastinate'")
    note(migrations, "04.00.00_01_pre_a.sql", "newer")
    prepare_tables(in_postgres.database())
    assert read(in_postgres, TOLD) == "newer"


def test_the_migration_that_fails_is_named_and_those_before_it_stay(
    in_postgres: Place, migrations: Path
) -> None:
    prepare_tables(in_postgres.database())
    note(migrations, "04.00.00_01_pre_a.sql", "applied")
    (migrations / "04.01.00_01_pre_b.sql").write_text(
        "COMMENT ON TABLE procrastinate_jobs IS 'half'; SELECT 1/0;"
    )
    for _ in range(2):
        with pytest.raises(
            StateError, match=r"procrastinate's migration 04\.01\.00_01_pre_b\.sql: .*refused"
        ):
            prepare_tables(in_postgres.database())
        assert read(in_postgres, NOTED) == "04.00.00_01_pre_a.sql"
        assert read(in_postgres, TOLD) == "applied"
