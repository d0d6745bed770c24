"""The shared database of batches: PostgreSQL, for any number of runners on any machines. Needs `sealpipe[batch]`."""

from __future__ import annotations

import re
import ssl
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import conninfo

from sealpipe.batch import statements as sql
from sealpipe.batch.database import Database, DatabaseUnavailableError, Dialect, Parameters, Transaction, Values
from sealpipe.errors import SettingError, StateError
from sealpipe.secret import Secret
from sealpipe.values import is_loopback

_CONNECTION: Final[Mapping[str, str | int]] = {
    "application_name": "sealpipe",
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "tcp_user_timeout": 30_000,  # milliseconds: a server that is gone without a word
}
_SESSION = (
    "SELECT set_config('statement_timeout', '60s', false), set_config('lock_timeout', '30s', false), "
    # what is recorded as `sending` must be on disk before it is sent, whatever the server's default
    "CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', false) END"
)
_CLOCK = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)"
_UNDONE = frozenset({"40001", "40P01", "55P03", "57014"})
"""Errors of transactions that waited for each other: undone, and to be tried again."""
_PARAMETER = re.compile(r":([a-z_]+[0-9]*)")


class PostgresDatabase(Database):
    """A database at an address, which may hold a password. Its connection serves every thread, one after another."""

    dialect = Dialect(
        integer="BIGINT",
        blob="BYTEA",
        skip_locked="FOR UPDATE SKIP LOCKED",
        lock_row="FOR UPDATE",
        states="SELECT jsonb_array_elements_text(CAST(:states AS jsonb))",
        find_meta="SELECT 1 WHERE to_regclass('sealpipe_meta') IS NOT NULL",
    )

    is_embedded = False

    def __init__(self, address: Secret, ca_file: Path | None = None) -> None:
        self._settings = check_address(address, ca_file)
        where = self._settings.get("host") or "the local socket"
        self.description = f"PostgreSQL database {self._settings.get('dbname') or ''} at {where}".replace("  ", " ")
        self._lock = threading.RLock()
        self._statements: dict[str, str] = {}
        self._connection: psycopg.Connection[Values] | None = None

    def read(self, statement: str, **parameters: object) -> list[Values]:
        with self._lock, self._translate_errors():
            connection = self._open()
            try:
                return self._run(connection, statement, parameters)
            except psycopg.OperationalError:
                if not connection.broken:
                    raise
            # The server was restarted since the last call.
            return self._run(self._open(), statement, parameters)

    @contextmanager
    def transaction(self, batch: str = "", *, exclusive: bool = False) -> Iterator[Transaction]:
        with self._lock, self._translate_errors():
            connection = self._begin()
            try:
                if batch:
                    lock = f"SELECT pg_advisory_xact_lock{'' if exclusive else '_shared'}(%s)"
                    connection.execute(lock, [int(batch[:15], 16)])
                yield _PostgresTransaction(self, connection)
                connection.execute("COMMIT")
            except BaseException:
                with suppress(psycopg.Error):
                    connection.execute("ROLLBACK")
                raise

    def read_clock(self) -> int:
        moment = self.read(_CLOCK)[0][0]
        assert isinstance(moment, int)  # noqa: S101 - the query casts it
        return moment

    @contextmanager
    def lock_runner(self) -> Iterator[None]:
        """Allow any number of runners."""
        yield

    def close(self) -> None:
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _begin(self) -> psycopg.Connection[Values]:
        begin = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
        connection = self._open()
        try:
            connection.execute(begin)
        except psycopg.OperationalError:
            if not connection.broken:
                raise
            connection = self._open()  # the server was restarted since the last call
            connection.execute(begin)
        return connection

    def _open(self) -> psycopg.Connection[Values]:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(autocommit=True, **self._settings)
            self._connection.execute(_SESSION)
        return self._connection

    def _run(self, connection: psycopg.Connection[Values], statement: str, parameters: Parameters) -> list[Values]:
        cursor = connection.execute(self._spell(statement).encode(), parameters)
        return [] if cursor.description is None else cursor.fetchall()

    def _run_many(self, connection: psycopg.Connection[Values], statement: str, rows: Iterable[Parameters]) -> int:
        with connection.cursor() as cursor:
            cursor.executemany(self._spell(statement).encode(), rows)
            return cursor.rowcount

    def _spell(self, statement: str) -> str:
        spelled = self._statements.get(statement)
        if spelled is None:
            spelled = _PARAMETER.sub(r"%(\1)s", sql.spell(statement, self.dialect._asdict()))
            self._statements[statement] = spelled
        return spelled

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raise psycopg's errors as ours, without their text: it may quote values, and parts of the address."""
        try:
            yield
        except psycopg.Error as error:
            kind, state = type(error).__name__, error.sqlstate
            gone = self._connection is None or self._connection.broken or state in _UNDONE
        else:
            return
        if gone:
            raise DatabaseUnavailableError(
                f"the {self.description} does not answer ({state or kind})",
                remedy="check that it runs, and the address, user and password; then run the command again",
            )
        raise StateError(
            f"the {self.description} refused a statement: {kind} ({state})",
            remedy="check the role's rights and the free space; `sealpipe batch database upgrade` makes missing tables",
        )


class _PostgresTransaction(Transaction):
    def __init__(self, database: PostgresDatabase, connection: psycopg.Connection[Values]) -> None:
        self._database = database
        self._connection = connection

    def run(self, statement: str, **parameters: object) -> list[Values]:
        return self._database._run(self._connection, statement, parameters)

    def run_many(self, statement: str, rows: Iterable[Parameters]) -> int:
        return self._database._run_many(self._connection, statement, rows)


def check_address(address: Secret, ca_file: Path | None) -> dict[str, Any]:
    """Return the parts of a database's address. Raises SettingError; over a network, TLS must be verified.

    `ca_file` is the PEM file to trust; None: the system's.
    """
    try:
        settings = conninfo.conninfo_to_dict(address.reveal())
    except (psycopg.Error, UnicodeError):  # its text quotes the address
        settings = {}
    # These two could lead elsewhere than the host whose certificate is checked.
    if not settings.get("host") or settings.keys() & {"hostaddr", "service"}:
        raise SettingError(
            "the batch database's address is not one of PostgreSQL, names no host, or more than a host",
            remedy="give it as postgresql://USER:PASSWORD@HOST/DATABASE",
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
