"""The shared database of batches: PostgreSQL, for any number of runners on any machines.

A pooler may stand between that gives a connection to each transaction (pgbouncer): nothing is set,
prepared, listened to or locked for longer than a transaction.

Needs `sealpipe[batch]`.
"""

from __future__ import annotations

import logging
import os
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import psycopg
from psycopg import conninfo

from sealpipe.batch.database.interface import (
    ConstraintError,
    Database,
    DatabaseUnavailableError,
    Dialect,
    Parameters,
    Transaction,
    Values,
    spell,
)
from sealpipe.errors import SettingError, StateError
from sealpipe.parsing import is_loopback
from sealpipe.secret import Secret, strips_frames

# Python would print what it warns of, which is raised, too.
logging.getLogger("psycopg").addHandler(logging.NullHandler())
_CONNECTION: Final[Mapping[str, str | int | None]] = {
    "application_name": "sealpipe",
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "tcp_user_timeout": 30_000,  # milliseconds: a server that is gone without a word
    "prepare_threshold": None,
}
_LIMITS = (
    "SELECT set_config('statement_timeout', '60s', true), set_config('lock_timeout', '30s', true)"
)
_BEGIN = (
    f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; {_LIMITS}, "
    # what is recorded as `sending` must be on disk before it is sent, whatever the server's default
    "CASE WHEN current_setting('synchronous_commit') = 'off' THEN "
    "set_config('synchronous_commit', 'on', true) END"
)
_ELSEWHERE: Final[Mapping[str, str]] = {"hostaddr": "PGHOSTADDR", "service": "PGSERVICE"}
"""What could lead elsewhere than to the host whose certificate is checked, and the environment
variable of each.
"""
_CLOCK = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)"
_CLOCK_AGE: Final = 1_000_000
"""Microseconds for which the database's clock is believed to run as ours."""
_PASSING = frozenset({"08", "28", "40", "55", "57"})
"""Classes of errors that pass: connection, login, transactions that waited for each other, a server
that stops.
"""
_CONSTRAINT: Final = "23"
"""Begins the codes of errors about a constraint: unique rows, and rows that name others."""
REFUSED_REMEDY: Final = (
    "check the role's rights, also on the sequences (`sealpipe batch database init "
    "--help`), and the free space; "
    "`sealpipe batch database upgrade` makes missing tables"
)


_PORTS = re.compile(r"[\d,]*", re.ASCII)
_Connection = psycopg.Connection[Values]
T = TypeVar("T")


class PostgresDatabase(Database):
    """A database at an address, which may hold a password.

    Its connection serves every thread, one after another.
    """

    dialect = Dialect(
        integer="BIGINT",
        blob="BYTEA",
        lock_row="FOR UPDATE",
        states="SELECT jsonb_array_elements_text(CAST(:states AS jsonb))",
        find_meta="SELECT 1 WHERE to_regclass('sealpipe_meta') IS NOT NULL",
        parameter=r"%(\1)s",
    )

    is_embedded = False

    def __init__(self, address: Secret, ca_file: Path | None = None) -> None:
        self._address, self._ca_file = address, ca_file
        settings = check_address(address, ca_file)
        name = settings.get("dbname") or settings.get("user") or ""
        self.description = f"PostgreSQL database {name} at {settings['host']}"
        self._lock = threading.RLock()
        self._connection: _Connection | None = None
        self._clock = -_CLOCK_AGE, 0

    def read(self, statement: str, **parameters: object) -> list[Values]:
        read = partial(self._read, statement, parameters)
        with self._lock:
            return self._translate(partial(self._start, read))

    @contextmanager
    def transaction(self, batch: str = "", *, exclusive: bool = False) -> Iterator[Transaction]:
        begin = _BEGIN
        if batch:
            lock = f"pg_advisory_xact_lock{'' if exclusive else '_shared'}"
            begin = f"{_BEGIN}; SELECT {lock}({int(batch[:15], 16)})"
        with self._lock:
            try:
                connection = self._translate(partial(self._start, partial(_execute, begin)))
                yield _PostgresTransaction(self, connection)
                self._translate(partial(_execute, "COMMIT", connection))
            except BaseException:
                if self._connection is not None:
                    with suppress(psycopg.Error):
                        self._connection.execute("ROLLBACK")
                raise

    def read_clock(self) -> int:
        """Return the database's time: as it was less than a second ago, and what has passed since.

        A row needs it more often than all else together.
        """
        passed, moment = self._clock
        now = _count_microseconds()
        if not 0 <= now - passed < _CLOCK_AGE:
            moment = self.read(_CLOCK)[0][0]
            assert isinstance(moment, int)  # noqa: S101 - the query casts it
            passed = now = _count_microseconds()
            self._clock = passed, moment
        return moment + now - passed

    @contextmanager
    def lock_runner(self) -> Iterator[None]:
        """Allow any number of runners."""
        yield

    @contextmanager
    def join_runner(self) -> Iterator[bool]:
        """Allow any number of processes."""
        yield True

    def close(self) -> None:
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def run(self, connection: _Connection, statement: str, parameters: Parameters) -> list[Values]:
        """Run a statement in a transaction of this thread's."""
        return self._translate(partial(self._run, connection, statement, parameters))

    def run_many(self, connection: _Connection, statement: str, rows: Iterable[Parameters]) -> int:
        """Run a statement for each set of parameters, in a transaction of this thread's."""
        return self._translate(partial(self._run_many, connection, statement, rows))

    def run_script(self, connection: _Connection, script: str) -> None:
        """Run statements as they are, in a transaction of this thread's."""
        self._translate(partial(connection.execute, script.encode()))

    def _start(self, work: Callable[[_Connection], T]) -> T:
        """Do work that begins on the connection, on a new one if the server was restarted."""
        connection = self._open()
        try:
            return work(connection)
        except psycopg.OperationalError:
            if not connection.broken:
                raise
        return work(self._open())

    def _open(self) -> _Connection:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(
                autocommit=True, **check_address(self._address, self._ca_file)
            )
        return self._connection

    def _read(
        self, statement: str, parameters: Parameters, connection: _Connection
    ) -> list[Values]:
        # Several statements are one message only with the values in its text.
        with psycopg.ClientCursor[Values](connection) as cursor:
            cursor.execute(f"{_LIMITS}; {spell(statement, self.dialect)}".encode(), parameters)
            cursor.nextset()
            return [] if cursor.description is None else cursor.fetchall()

    def _run(self, connection: _Connection, statement: str, parameters: Parameters) -> list[Values]:
        cursor = connection.execute(spell(statement, self.dialect).encode(), parameters)
        return [] if cursor.description is None else cursor.fetchall()

    def _run_many(self, connection: _Connection, statement: str, rows: Iterable[Parameters]) -> int:
        with connection.cursor() as cursor:
            cursor.executemany(spell(statement, self.dialect).encode(), rows)
            return cursor.rowcount

    def _translate(self, work: Callable[[], T]) -> T:
        """Do work, and raise psycopg's errors as ours, without values and without the address."""
        try:
            return work()
        except psycopg.Error as error:
            failure = self._make_error(
                type(error).__name__, error.sqlstate, is_passing=is_passing(error)
            )
        raise failure

    def _make_error(self, kind: str, state: str | None, *, is_passing: bool) -> StateError:
        if is_passing:
            return DatabaseUnavailableError(
                f"the {self.description} does not answer ({state or kind})",
                remedy=(
                    "check that it runs, the address, user and password, and that a pooler before "
                    "it has a connection left; then run the command again"
                ),
            )
        return (ConstraintError if (state or "").startswith(_CONSTRAINT) else StateError)(
            f"the {self.description} refused a statement: {kind} ({state})",
            remedy=REFUSED_REMEDY,
        )


class _PostgresTransaction(Transaction):
    def __init__(self, database: PostgresDatabase, connection: _Connection) -> None:
        self._database = database
        self._connection = connection

    def run(self, statement: str, **parameters: object) -> list[Values]:
        return self._database.run(self._connection, statement, parameters)

    def run_many(self, statement: str, rows: Iterable[Parameters]) -> int:
        return self._database.run_many(self._connection, statement, rows)

    def run_script(self, script: str) -> None:
        self._database.run_script(self._connection, script)


def _count_microseconds() -> int:
    """Return what grows evenly, on Linux also while the machine sleeps."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) // 1000


def _execute(statement: str, connection: _Connection) -> _Connection:
    connection.execute(statement.encode())
    return connection


def is_passing(error: psycopg.Error) -> bool:
    """Return whether the database is unavailable for now, and refuses nothing for good."""
    if error.sqlstate is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return error.sqlstate[:2] in _PASSING


@strips_frames
def check_address(address: Secret, ca_file: Path | None) -> dict[str, Any]:
    """Return the parts of a database's address.

    Raises SettingError; over a network, TLS must be verified.

    `ca_file` is the PEM file to trust; None: the system's.
    """
    try:
        settings = conninfo.conninfo_to_dict(address.reveal())
    except (psycopg.Error, UnicodeError):  # its text quotes the address
        settings = {}
    # libpq takes what stands behind the first `@` or `/` of a password for the host or the name,
    # which are told.
    told = f"{settings.get('host')}{settings.get('dbname')}"
    is_whole = "@" not in told and _PORTS.fullmatch(str(settings.get("port", "")))
    if not settings.get("host") or not is_whole or settings.keys() & _ELSEWHERE.keys():
        raise SettingError(
            (
                "the batch database's address is not one of PostgreSQL, names no host, or more "
                "than a host"
            ),
            remedy=(
                "give it as postgresql://USER:PASSWORD@HOST/DATABASE, with %40 for an @, %3A for "
                "a : and %2F for a / in a part of it"
            ),
        )
    found = [name for name in _ELSEWHERE.values() if name in os.environ]
    if found:
        raise SettingError(
            (
                f"{found[0]} is set, and could lead elsewhere than to the host of the batch "
                "database's address"
            ),
            remedy=(
                f"unset {found[0]}, and give all in the address: "
                "postgresql://USER:PASSWORD@HOST/DATABASE"
            ),
        )
    hosts = str(settings["host"]).split(",")
    if not all(host.startswith("/") or is_loopback(host) for host in hosts):
        if settings.setdefault("sslmode", "verify-full") != "verify-full":
            raise SettingError(
                "the connection to the batch database must be verified TLS",
                remedy="use sslmode=verify-full, or leave sslmode out",
            )
        settings.setdefault("sslrootcert", str(ca_file or _find_system_bundle()))
    return {**settings, **_CONNECTION}


def _find_system_bundle() -> str:
    found = ssl.get_default_verify_paths().cafile
    if found is None:
        import certifi  # most systems have a bundle of their own

        found = certifi.where()
    return found
