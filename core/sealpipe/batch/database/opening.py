"""Opens the store of batches: SQLite in the state directory, or PostgreSQL at an address."""

from __future__ import annotations

from pathlib import Path

from sealpipe.api.operation import Credential
from sealpipe.batch.database.interface import Database, open_schema, prepare_schema
from sealpipe.batch.database.keyring import BatchKeyring
from sealpipe.batch.database.postgres_queue import PostgresQueue
from sealpipe.batch.database.queue import RowQueue
from sealpipe.batch.database.queue_tables import prepare_queue
from sealpipe.batch.database.sqlite import (
    SqliteDatabase,
)
from sealpipe.batch.database.store import BatchStore
from sealpipe.errors import SettingError
from sealpipe.installation import format_command
from sealpipe.secret import Secret


def open_database(
    folder: Path, address: Secret | None = None, ca_file: Path | None = None
) -> Database:
    """Open the SQLite file of a folder, or PostgreSQL at an address.

    `ca_file` is a PEM file to trust.

    Raises StateError, and SettingError for a wrong address or missing packages.
    """
    if address is None:
        return SqliteDatabase(folder)
    try:
        from sealpipe.batch.database.postgres import PostgresDatabase
    except ImportError:
        remedy = format_command(["sealpipe[batch]"])
        raise SettingError(
            "a batch in PostgreSQL needs packages that are not installed", remedy=remedy
        ) from None
    return PostgresDatabase(address, ca_file)


def prepare_tables(database: Database) -> None:
    """Make the tables, or upgrade them: those of PostgreSQL's queue, too.

    Raises StateError if they are newer, or this user may not.
    """
    prepare_schema(database)
    if not database.is_embedded:
        prepare_queue(database)


def open_store(
    database: Database, credential: Credential, service: str, *, previous: Credential | None = None
) -> BatchStore:
    """Open the batches of a credential at a service, whose base URL is `service`.

    An embedded database gets its tables here. Raises StateError if those of PostgreSQL are missing
    or older (`prepare_tables` makes them), or any were made by a newer sealpipe.
    """
    try:
        salt = open_schema(database, prepare=database.is_embedded)
    except BaseException:
        database.close()
        raise
    keyring = BatchKeyring(database, salt, credential, previous, service)
    queue = RowQueue if database.is_embedded else PostgresQueue
    return BatchStore(database, keyring, queue(database))
