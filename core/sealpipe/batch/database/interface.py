"""What a batch's database offers, whichever it is; and its tables: made, upgraded, or refused."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, Final, NamedTuple

from sealpipe.batch.database import statements as sql
from sealpipe.batch.database.sealing import make_damage_error
from sealpipe.errors import StateError

_SALT_SIZE = 32
_FIRST_WITHOUT_CLAIMS: Final = 3

Parameters = Mapping[str, Any]
Values = tuple[Any, ...]


class Dialect(NamedTuple):
    """What the two databases spell differently."""

    integer: str
    blob: str
    lock_row: str
    """What locks the row that a query returns until the transaction ends."""
    states: str
    """The query that gives the texts of the JSON array `:states`."""
    find_meta: str
    """The query that gives a row if the tables are there."""
    parameter: str
    """How a parameter is written, with `\\1` for its name."""


_PARAMETER: Final = re.compile(r":([a-z_]+[0-9]*)")


@cache
def spell(statement: str, dialect: Dialect) -> str:
    """Return a statement with its shared parts, in the spelling of one database."""
    return _PARAMETER.sub(dialect.parameter, sql.fill_in(statement, dialect._asdict()))


class DatabaseUnavailableError(StateError):
    """The database did not answer, so whether the last write happened is not known.

    The next call connects again.
    """


class ConstraintError(StateError):
    """What was to be written does not fit to what somebody else has written: nothing was."""


class Transaction(ABC):
    """Statements that are carried out together, or not at all."""

    @abstractmethod
    def run(self, statement: str, **parameters: object) -> list[Values]:
        """Run one statement, and return the rows that it gives."""

    @abstractmethod
    def run_many(self, statement: str, rows: Iterable[Parameters]) -> int:
        """Run one statement for each set of parameters, and return how many rows were changed."""

    @abstractmethod
    def run_script(self, script: str) -> None:
        """Run statements of somebody else's, as they are."""


class Database(ABC):
    """A batch's database.

    Its methods raise StateError; DatabaseUnavailableError if it did not answer.
    """

    dialect: Dialect
    description: str
    """For people: no secret."""
    is_embedded: bool
    """Whether it is a file of this machine, whose tables are made when it is opened."""

    @abstractmethod
    def read(self, statement: str, **parameters: object) -> list[Values]:
        """Run one query on its own."""

    @abstractmethod
    def transaction(
        self, batch: str = "", *, exclusive: bool = False
    ) -> AbstractContextManager[Transaction]:
        """Begin a write transaction: on disk when the block ends, undone if it raises.

        An `exclusive` one keeps out the others of the same batch.
        """

    @abstractmethod
    def read_clock(self) -> int:
        """Return microseconds since 1970 UTC."""

    @abstractmethod
    def lock_runner(self) -> AbstractContextManager[None]:
        """Be the only runner, if the database allows only one.

        Raises StateError if another process is.
        """

    @abstractmethod
    def join_runner(self) -> AbstractContextManager[bool]:
        """Keep runners out meanwhile, and others who do, if the database allows only one.

        Yields False if there is one of them: then this process may not work on rows.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the connection. It can be repeated."""


def prepare_schema(database: Database) -> None:
    """Make the tables, or upgrade them.

    Raises StateError if they are newer, or this user may not.
    """
    with database.transaction() as transaction:
        for statement in sql.TABLES:
            transaction.run(statement)
        transaction.run(sql.ADD_META, name="schema", value=str(sql.SCHEMA_VERSION))
        transaction.run(sql.ADD_META, name="salt", value=os.urandom(_SALT_SIZE).hex())
        found = int(_read_meta(transaction.run(sql.READ_META, name="schema"), r"\d{1,9}"))
        if found > sql.SCHEMA_VERSION:
            raise _make_newer_error(database)
        for statement in sql.REMOVE_CLAIMS if found < _FIRST_WITHOUT_CLAIMS else ():
            transaction.run(statement)
        transaction.run(sql.SET_META, name="schema", value=str(sql.SCHEMA_VERSION))


def open_schema(database: Database, *, prepare: bool) -> bytes:
    """Return the database's salt, once its tables have this version. Raises StateError.

    With `prepare`, missing or older tables are made first.
    """
    found = None
    if database.read(database.dialect.find_meta):
        found = int(_read_meta(database.read(sql.READ_META, name="schema"), r"\d{1,9}"))
    if found is not None and found > sql.SCHEMA_VERSION:
        raise _make_newer_error(database)
    if found != sql.SCHEMA_VERSION:
        if not prepare:
            command, problem = (
                ("init", "missing") if found is None else ("upgrade", "of an older sealpipe")
            )
            raise StateError(
                f"the tables in the {database.description} are {problem}",
                remedy=(
                    f"run `sealpipe batch database {command}` with a role that may create tables"
                ),
            )
        prepare_schema(database)
    return bytes.fromhex(
        _read_meta(database.read(sql.READ_META, name="salt"), rf"[0-9a-f]{{{2 * _SALT_SIZE}}}")
    )


def _read_meta(rows: list[Values], pattern: str) -> str:
    if (
        len(rows) != 1
        or not isinstance(rows[0][0], str)
        or not re.fullmatch(pattern, rows[0][0], re.ASCII)
    ):
        raise make_damage_error()
    return rows[0][0]


def _make_newer_error(database: Database) -> StateError:
    return StateError(
        (
            f"the tables in the {database.description} were made by a newer sealpipe: nothing "
            "was changed"
        ),
        remedy="install that version, or a newer one",
    )


def check_types(values: Values, kinds: str) -> Values:
    """Return the values if each has its type.

    Raises StateError: a database that was changed by hand may hold anything.

    `kinds` has a letter for each value: t text, w a word such as a state, i integer, n integer or
    nothing, b bytes. A state that is counted is a word: no blob vouches for it, and it is told to
    people.
    """
    for value, kind in zip(values, kinds, strict=True):
        is_no_word = kind == "w" and _WORD.fullmatch(str(value)) is None
        is_no_time = isinstance(value, int) and not _FIRST_TIME <= value <= _LAST_TIME
        if (
            is_no_word
            or is_no_time
            or not isinstance(value, _KINDS[kind])
            or isinstance(value, bool)
        ):
            raise make_damage_error()
    return values


# Years 1 to 9999: no number is beyond.
_FIRST_TIME, _LAST_TIME = (
    -62_135_596_800_000_000,
    253_402_300_799_999_999,
)
_WORD = re.compile("[a-z]{1,16}")
_KINDS: Mapping[str, tuple[type, ...]] = {
    "t": (str,),
    "w": (str,),
    "i": (int,),
    "n": (int, type(None)),
    "b": (bytes,),
}
