"""Alembic runs this: it upgrades the database of the connection that `migrating` gives it."""

from __future__ import annotations

from alembic import context

from sealpipe_service.database.versions import TABLE

context.configure(
    connection=context.config.attributes["connection"],
    version_table=TABLE,
    transactional_ddl=True,  # all or nothing, on SQLite too
)
context.run_migrations()
