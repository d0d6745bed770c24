"""procrastinate's tables in a batch's PostgreSQL database: made, and upgraded by its migrations.

procrastinate does not note which of its migrations were applied, so `sealpipe_meta` has the last.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sealpipe.batch.database import statements as sql
from sealpipe.batch.database.interface import Database, DatabaseUnavailableError
from sealpipe.errors import StateError

_META: Final = "procrastinate"
_FIRST: Final = "03.04.00_50_post_add_retry_failed_job_procedure.sql"
"""The last migration of procrastinate 3.10, whose tables nobody noted."""
_HAS_TABLES = "SELECT 1 WHERE to_regclass('procrastinate_jobs') IS NOT NULL"
_LOCK = "LOCK TABLE sealpipe_meta IN SHARE ROW EXCLUSIVE MODE"


def prepare_queue(database: Database) -> None:
    """Make procrastinate's tables, or bring them to the installed version.

    Each migration is a transaction. Raises StateError, which names the one that failed: those
    before stay applied.
    """
    from procrastinate.schema import SchemaManager  # it imports much

    migrations = {
        each.name: each for each in Path(SchemaManager.get_migrations_path()).glob("*.sql")
    }
    last = max(migrations)
    with database.transaction() as transaction:
        transaction.run(_LOCK)
        if not transaction.run(_HAS_TABLES):
            transaction.run_script(SchemaManager.get_schema())
            transaction.run(sql.ADD_META, name=_META, value=last)
        transaction.run(sql.ADD_META, name=_META, value=_FIRST)
        ((applied,),) = transaction.run(sql.READ_META, name=_META)
    for name in sorted(migrations):
        if name > applied:
            _apply(database, name, migrations[name].read_text(encoding="utf-8"))


def _apply(database: Database, name: str, script: str) -> None:
    try:
        with database.transaction() as transaction:
            transaction.run(_LOCK)
            if transaction.run(sql.READ_META, name=_META) < [(name,)]:
                transaction.run_script(script)
                transaction.run(sql.SET_META, name=_META, value=name)
    except DatabaseUnavailableError:
        raise
    except StateError as error:
        raise StateError(
            f"procrastinate's migration {name}: {error.message}", remedy=error.remedy
        ) from None
