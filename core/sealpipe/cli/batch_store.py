"""Parts of every `sealpipe batch` command.

Its database, a batch by its name, and files that it writes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from sealpipe.batch.database.interface import Database
from sealpipe.batch.database.opening import open_database, open_store
from sealpipe.batch.database.sqlite import FILE_NAME
from sealpipe.batch.database.store import BatchStore
from sealpipe.batch.engine.advance import Engine
from sealpipe.batch.engine.session import open_engine
from sealpipe.batch.file.document import read_document
from sealpipe.batch.file.mistakes import BatchFileError
from sealpipe.batch.steps.content import RowContent
from sealpipe.cli import render
from sealpipe.cli.command import run_config
from sealpipe.cli.local import find_state_folder, make_registry
from sealpipe.cli.opening import make_session
from sealpipe.client_base import connect
from sealpipe.command_settings import COMMANDS, get_command_table
from sealpipe.errors import SealpipeError, SettingError, UsageError
from sealpipe.reference import parse
from sealpipe.secret import Secret
from sealpipe.session import Session
from sealpipe.sources.resolve import resolve_secret
from sealpipe.state.files import replace_file


def open_database_of(values: Mapping[str, Any], address: Secret | None = None) -> Database:
    """Open the database that the options name: PostgreSQL, or SQLite in the state directory.

    Needs no credential.

    `address` is that of the database, if it was read already.
    """
    return open_database(
        find_state_folder(values, "batch"), address or read_address(values), get_ca_file(values)
    )


def get_ca_file(values: Mapping[str, Any]) -> Path | None:
    """Return the file of certificates to trust; None for the system's only."""
    return None if values["ca_file"] is None else Path(values["ca_file"])


@contextmanager
def open_store_of(
    values: Mapping[str, Any], address: Secret | None = None
) -> Iterator[tuple[Session, BatchStore]]:
    """Open the session and the batches of its credential.

    Raises StateError if another credential's are named.
    """
    session = make_session(values)
    database = open_database_of(values, address)
    store = open_store(database, session.credential, session.base_url, previous=session.previous)
    store.ledger_folder = find_state_folder(values, "requests")
    store.marks_folder = find_state_folder(values, "batch-marks")
    try:
        with closing(connect(session)):
            yield session, store
    finally:
        store.close()


def open_named(session: Session, store: BatchStore, name: str) -> Engine:
    """Open a batch by its name. UsageError if there is none, or it is the name of a file."""
    if "." in name or "/" in name:
        raise _make_file_error(name)
    return open_engine(session, store, name)


def _make_file_error(file: str) -> UsageError:
    known = None
    with suppress(BatchFileError):
        known = read_document(Path(file)).members.get("name")
    command = click.get_current_context().command_path
    return UsageError(
        f"{render.escape(file[:80])} is the name of a file, and this command takes that of a batch",
        remedy=f"`{command} {render.escape(known)}`"
        if isinstance(known, str)
        else "`sealpipe batch list` shows them",
    )


def find_batch_row(values: Mapping[str, Any], short_code: str) -> tuple[str, str] | None:
    """Return the batch and the row key of a request, for a command that is not about batches.

    None if no batch has it in the database that is set here, or there is no such database.
    """
    setting = next(each for each in COMMANDS["batch"] if each.name == "database")
    address = os.environ.get(setting.get_variable("batch")) or get_command_table(
        run_config().user, "batch"
    ).get("database")
    if not address and not (find_state_folder(values, "batch") / FILE_NAME).exists():
        return None
    with (
        suppress(SealpipeError),
        open_store_of({**values, "database": address and parse(address)}) as (_, store),
    ):
        for batch in store.list_batches():
            for row in store.list_rows(batch, contents=True):
                if RowContent.load(row).progress.short_code == short_code:
                    return batch.name, row.key or ""
    return None


def write_file(name: str, content: bytes) -> None:
    """Write a file (mode 0600), or replace it. Raises UsageError."""
    problem = "it is a link, or no plain file"
    try:
        if replace_file(Path(name).absolute(), content):
            return
    except OSError as error:
        problem = error.strerror or type(error).__name__
    raise UsageError(
        f"{name} cannot be written: {problem}",
        remedy="give the path of a file in an existing folder",
    )


def read_address(values: Mapping[str, Any]) -> Secret | None:
    """Read the address of the database, which may hold a password; None for SQLite."""
    reference = values["database"]
    if reference is None:
        return None
    registry = make_registry(values["ca_file"], None, values["deadline"])
    try:
        address = resolve_secret(reference, "the address of a database", lambda: registry)
    finally:
        registry.close()
    if address is None:
        raise SettingError(
            f"{reference} has no value", remedy="set it to postgresql://USER@HOST/DATABASE"
        )
    return address
