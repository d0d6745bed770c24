"""The connection to PostgreSQL: transactions under a deadline, and logins that prove a password.

psycopg's errors become ours here: their text may quote a statement or a password.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from typing import Any, Final

import psycopg

from sealpipe.plugin import Context, UnknownOutcomeError, UnsupportedError
from sealpipe_plugins.postgres_role.errors import connect_error, statement_error
from sealpipe_plugins.postgres_role.parameters import Parameters, make_login, make_parameters
from sealpipe_plugins.postgres_role.settings import PostgresSettings

Connection = psycopg.Connection[tuple[Any, ...]]

_BEGIN: Final = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_SESSION: Final = (
    # so that nobody's functions are called
    "SELECT pg_catalog.set_config('search_path', 'pg_catalog', true), "
    "pg_catalog.set_config('statement_timeout', '30s', true), "
    "pg_catalog.set_config('lock_timeout', '10s', true), CASE WHEN "
    "pg_catalog.current_setting('synchronous_commit') = 'off' THEN "
    "pg_catalog.set_config('synchronous_commit', 'on', true) END"
)
_OLDEST: Final = 100_000
"""PostgreSQL 10, the first with SCRAM."""


class Proof(Enum):
    """What a login with a password has shown."""

    ACCEPTED = "the server has checked the password, and it is the role's"
    REFUSED = "the server has checked the password, and it is not the role's"
    NONE = "the server did not ask for the password, or did not get so far"


_ACCEPTED: Final = ("permission denied for database", "too many connections for role")
"""What a server says only after the password was right; in other languages there is no proof."""
_REFUSED: Final = "password authentication failed"


class Server:
    """A server, and one connection to it at a time, as the user of the settings."""

    def __init__(self, settings: PostgresSettings, context: Context) -> None:
        self._parameters: Parameters = make_parameters(settings, context)
        self._deadline = context.deadline
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self.name = f"PostgreSQL at {_describe_address(self._parameters)}"

    @contextmanager
    def transaction(self, *, writes: bool = False) -> Iterator[Connection]:
        """Run a transaction: committed at the end of the block, unless it raises.

        Raises UnavailableError, AccessDeniedError and others; UnknownOutcomeError if it `writes`
        and the server did not say whether it committed. Psycopg's errors of the block become ours,
        too.
        """
        with self._lock:
            is_committing = False
            connection = self._open()
            try:
                with _limit(connection, self._deadline):
                    connection.execute(f"{_BEGIN}; {_SESSION}".encode())
                    yield connection
                    is_committing = writes
                    connection.execute("COMMIT")
                return
            except psycopg.Error as error:
                failure = statement_error(error, self.name)
                if is_committing and (connection.broken or error.sqlstate is None):
                    failure = UnknownOutcomeError(
                        f"{self.name} did not say whether it set the password",
                        remedy="run it again: it looks first",
                    )
            finally:
                self._leave(connection)
        raise failure

    def log_in(self, role: str, password: str) -> Proof:
        """Try a role's password."""
        with self._lock:
            parameters = make_login(self._parameters, role, password, self._open())
        try:
            with psycopg.connect(**parameters) as connection:
                return Proof.ACCEPTED if connection.pgconn.used_password else Proof.NONE
        except psycopg.Error as error:
            was_asked = error.pgconn is not None and error.pgconn.used_password
            text = str(error)
        if not was_asked:
            return Proof.NONE
        if any(words in text for words in _ACCEPTED):
            return Proof.ACCEPTED
        return Proof.REFUSED if _REFUSED in text else Proof.NONE

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _open(self) -> Connection:
        if self._connection is not None and not self._connection.closed:
            return self._connection
        try:
            connection: Connection = psycopg.connect(
                autocommit=True, prepare_threshold=None, **self._parameters
            )
        except psycopg.Error as error:
            failure = connect_error(error, self.name)
        else:
            if connection.info.server_version < _OLDEST:
                connection.close()
                raise UnsupportedError(
                    f"{self.name} is older than version 10, and has no SCRAM", remedy="upgrade it"
                )
            self._connection = connection
            return connection
        raise failure

    def _leave(self, connection: Connection) -> None:
        """Leave no transaction open, whatever has happened in it."""
        with suppress(psycopg.Error):
            if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                with _limit(connection, self._deadline):
                    connection.execute("ROLLBACK")
                return
        if connection.broken:
            connection.close()


@contextmanager
def _limit(connection: Connection, seconds: float) -> Iterator[None]:
    """End a connection that takes longer: psycopg waits for a silent server without limit."""
    timer = threading.Timer(seconds, _shut_down, [connection])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _shut_down(connection: Connection) -> None:
    with (
        suppress(OSError, psycopg.Error),
        socket.socket(fileno=os.dup(connection.fileno())) as line,
    ):
        line.shutdown(socket.SHUT_RDWR)


def _describe_address(parameters: Parameters) -> str:
    port = f":{parameters['port']}" if "port" in parameters else ""
    return f"{parameters['host']}{port}"
