"""The database on PostgreSQL, which any number of processes and machines share.

psycopg runs the text that the statements compile to. An engine of SQLAlchemy's would add its own
transactions, rows and cache of texts to each call, and nothing that is used here.

Statements are sent with their values in their text, for then several are one message: the next trip
takes along what nobody waits for, a transaction's beginning first. A trip costs more than most of
what is done at its end.

A pooler may stand between that gives a connection to each transaction (pgbouncer): nothing is set
for a session, prepared, listened to or locked beyond a transaction.
"""

from __future__ import annotations

import os
import re
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg import conninfo, generators, postgres, pq
from psycopg.abc import Buffer, PQGen
from psycopg.abc import Transformer as AnyTransformer
from psycopg.adapt import Dumper, Transformer
from psycopg.types.string import StrDumperUnknown, TextLoader
from sqlalchemy.dialects import postgresql

from ..addresses import is_loopback
from . import versions
from .access import (
    AddressError,
    DatabaseError,
    InFlightError,
    Row,
    Transaction,
    UnavailableError,
    number_of,
)
from .compiling import compile_statements
from .planned import KNOWN, find_calls, make_functions
from .pool import Pool
from .statements import make

SIZE = 10
"""How many connections a process has at most."""
ANSWER_SECONDS = 5.0
"""After so long without an answer the database is unavailable."""

_PORTS: Final = re.compile(r"[\d,]*", re.ASCII)
_VERIFYING: Final = ("verify-full", "verify-ca")
ESCAPE: Final = "\x1a"

STATEMENTS: Final[Mapping[str, bytes]] = {
    name: text.encode()
    for name, text in compile_statements(
        make(postgresql.insert),
        postgresql.dialect(paramstyle="pyformat"),  # type: ignore[no-untyped-call]
    ).items()
}

_FUNCTIONS: Final = make_functions()

_CONNECTION: Final[Mapping[str, Any]] = {
    "application_name": "sealpipe server",
    "connect_timeout": int(ANSWER_SECONDS),
    "keepalives_idle": int(ANSWER_SECONDS),
    "tcp_user_timeout": int(ANSWER_SECONDS * 1000),
    "client_encoding": "utf8",
}
# A client that is stopped or cut off with a transaction open holds up others only for so long.
_LIMITS = "SET LOCAL statement_timeout = '4s'; SET LOCAL idle_in_transaction_session_timeout = '8s'"
_READ = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {_LIMITS}".encode()
# Whatever the server's default: what was answered is on disk.
_WRITE = (
    f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; {_LIMITS}; SET LOCAL synchronous_commit = on"
).encode()
_WRITE_QUICKLY = (
    f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; {_LIMITS}; "
    "SET LOCAL synchronous_commit = off"
).encode()
# The second lock only with the first: whoever is refused keeps it from nobody.
_CLAIM = (
    b"SELECT is_only, CASE WHEN is_only THEN pg_try_advisory_xact_lock(%(any_body)s) END AS is_all "
    b"FROM (SELECT pg_try_advisory_xact_lock(%(with_body)s) AS is_only) AS first"
)
# A message alone is a transaction.
_LOOK = b"SET LOCAL statement_timeout = '4s'"
_CHANGE_QUICKLY = _LOOK + b"; SET LOCAL synchronous_commit = off"
_IS_VERSIONED = f"SELECT 1 WHERE to_regclass('{versions.TABLE}') IS NOT NULL".encode()
_ALONE = b"SELECT pg_advisory_xact_lock(%(name)s)"

_PASSING: Final = frozenset({"08", "25", "28", "40", "53", "55", "57"})
"""Classes of errors that pass: connection, a standby, login, transactions that waited for each
other, no room, locks, a server that stops.
"""


Bound = tuple[bytes, Mapping[str, object] | None]
"""A statement's text, with the values that belong into it."""
_Values = Mapping[str, Any]


class _FunctionError(UnavailableError):
    """A function that the database had is gone, or not the only one that is meant."""


@dataclass(frozen=True)
class Answer:
    """What a statement was answered: its rows, how many it found or changed, and its tag."""

    rows: Sequence[_Values]
    count: int
    tag: bytes | None


class Connection(psycopg.Connection[Any]):
    """A connection that waits for no answer longer than ANSWER_SECONDS.

    It runs statements without a cursor, which would cost more than all else that is done for them.
    """

    _transformer: AnyTransformer | None = None

    def run(self, statements: Sequence[Bound]) -> Sequence[Answer]:
        """Run statements as one message: in a transaction of their own, or in the open one.

        A text without values may hold several; each of them is answered.
        """
        if self.closed:
            raise psycopg.OperationalError("the connection is closed")
        # It remembers how each type is written and read.
        transformer = self._transformer = self._transformer or Transformer(self)
        message = b"; ".join(_bind(transformer, *each) for each in statements)
        with self.lock:
            results = self.wait(_ask(self.pgconn, message))
        for result in results:
            if result.status == pq.ExecStatus.FATAL_ERROR:
                raise psycopg.errors.error_from_result(result)
        return [_read(transformer, result) for result in results]

    def wait(self, gen: PQGen[Any], *words: Any, **options: Any) -> Any:
        return super().wait(_limit(gen), *words, **options)

    def is_idle(self) -> bool:
        return self.pgconn.transaction_status == pq.TransactionStatus.IDLE

    def is_lost(self) -> bool:
        status = self.pgconn.transaction_status
        return status in (pq.TransactionStatus.UNKNOWN, pq.TransactionStatus.ACTIVE)


def _bind(transformer: AnyTransformer, text: bytes, values: Mapping[str, object] | None) -> bytes:
    """Return a statement with its values in its text."""
    if values is None:
        return text
    literal = transformer.as_literal
    return text % {name.encode(): bytes(literal(value)) for name, value in values.items()}


def _ask(connection: pq.abc.PGconn, message: bytes) -> PQGen[list[pq.abc.PGresult]]:
    connection.send_query(message)
    results: list[pq.abc.PGresult] = yield from generators.execute(connection)
    return results


def _read(transformer: AnyTransformer, result: pq.abc.PGresult) -> Answer:
    fields = map(result.fname, range(result.nfields))
    names = [name.decode() for name in fields if name is not None]
    transformer.set_pgresult(result)
    rows = transformer.load_rows(0, result.ntuples, lambda row: dict(zip(names, row, strict=True)))
    return Answer(rows, result.command_tuples or 0, result.command_status)


def _limit(gen: PQGen[Any]) -> PQGen[Any]:
    """Wait as `gen` does, which is told now and then that nothing has come, but not for ever."""
    until = time.monotonic() + ANSWER_SECONDS
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > until:
                raise psycopg.OperationalError("no answer")
            wanted = gen.send(ready)
    except StopIteration as end:
        return end.value


class _TextDumper(StrDumperUnknown):
    """Writes text. PostgreSQL's has no NUL, which a title may have: ESCAPE stands before `0` for
    it, and before `1` for itself.
    """

    def dump(self, obj: str) -> Buffer | None:
        if "\0" in obj or ESCAPE in obj:
            obj = obj.replace(ESCAPE, f"{ESCAPE}1").replace("\0", f"{ESCAPE}0")
        return super().dump(obj)


class _TruthDumper(Dumper):
    """Writes True as 1, as it is in the tables."""

    oid = postgres.types["int2"].oid

    def dump(self, obj: bool) -> Buffer | None:  # noqa: FBT001
        return b"1" if obj else b"0"


class _TextLoader(TextLoader):
    """Reads what _TextDumper wrote."""

    def load(self, data: Buffer) -> str:
        text = str(super().load(data))
        if ESCAPE in text:
            return text.replace(f"{ESCAPE}0", "\0").replace(f"{ESCAPE}1", ESCAPE)
        return text


class _Transaction:
    """Statements on a connection that is taken with the first of them.

    `begin` is sent before it. Where a connection that waited was cut, both are sent once more.
    """

    def __init__(
        self, pool: Pool[Connection], where: str, begin: bytes, texts: Mapping[str, bytes]
    ) -> None:
        self._pool, self._where, self._texts = pool, where, texts
        self._taken = ExitStack()
        self._connection: Connection | None = None
        self._waiting: list[Bound] = [(begin, None)]

    def rows(self, statement: str, /, **values: object) -> Sequence[Row]:
        return self.execute(self._texts[statement], values).rows

    def row(self, statement: str, /, **values: object) -> Row | None:
        found = self.rows(statement, **values)
        return found[0] if found else None

    def change(self, statement: str, /, **values: object) -> int:
        return self.execute(STATEMENTS[statement], values).count

    def later(self, statement: str, /, **values: object) -> None:
        self._waiting.append((self._texts[statement], values))

    def execute(self, text: bytes, values: Mapping[str, object] | None = None) -> Answer:
        return self.send((text, values))[-1]

    def send(self, *statements: Bound) -> Sequence[Answer]:
        """Send statements behind those that wait, as one message."""
        message = [*self._waiting, *statements]
        self._waiting.clear()
        answers: list[Answer] = []

        def run(connection: Connection) -> None:
            try:
                answers[:] = connection.run(message)
            except psycopg.Error as error:
                failure = explain(error, self._where)
            else:
                return
            raise failure

        if self._connection is None:
            self._connection = self._taken.enter_context(self._pool.take(run))
        else:
            run(self._connection)
        return answers[-len(statements) :]

    def commit(self) -> None:
        if self._connection is None:
            self.send()  # what ends a transaction is sent once
        # A transaction that has failed answers ROLLBACK to it, and no error.
        if self.execute(b"COMMIT").tag != b"COMMIT":
            raise DatabaseError(f"the {self._where} did not commit")

    def end(self) -> None:
        """Take back what was not committed. A connection that cannot do it is closed."""
        with self._taken:
            if self._connection is None:
                return
            status = self._connection.pgconn.transaction_status
            if status in (pq.TransactionStatus.INTRANS, pq.TransactionStatus.INERROR):
                with suppress(psycopg.Error):
                    self._connection.run([(b"ROLLBACK", None)])


@dataclass(frozen=True)
class _Claim:
    transaction: _Transaction
    replay: Row | None

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        yield self.transaction
        self.transaction.commit()


class Postgresql:
    """A `Database` at an address, `postgresql://...`, which may hold a password.

    A connection is made when it is first needed, and in the process that needs it. Raises
    AddressError; its methods raise UnavailableError, and DatabaseError for what a role may not do.
    """

    def __init__(self, address: str, size: int = SIZE) -> None:
        self._settings = read_address(address)
        self.description = describe(self._settings)
        self._pool = Pool(self._connect, size, ANSWER_SECONDS)
        self._texts: Mapping[str, bytes] = STATEMENTS
        """With calls of the functions that the database has, once it was asked."""

    def _connect(self) -> Connection:
        try:
            connection = Connection.connect(
                autocommit=True,
                prepare_threshold=None,
                **self._settings,
            )
            connection.adapters.register_dumper(str, _TextDumper)
            connection.adapters.register_dumper(bool, _TruthDumper)
            connection.adapters.register_loader("text", _TextLoader)
            if self._texts is STATEMENTS:
                (known,) = connection.run([(KNOWN.encode(), None)])
                schemas = {row["proname"]: row["schema"] for row in known.rows}
                self._texts = {**STATEMENTS, **find_calls(_FUNCTIONS, schemas)}
        except psycopg.Error as error:
            failure = explain_connecting(error, self.description)
        else:
            return connection
        raise failure

    @contextmanager
    def _transaction(self, begin: bytes) -> Iterator[_Transaction]:
        """A transaction that whoever asks for it commits, or that is taken back."""
        transaction = _Transaction(self._pool, self.description, begin, self._texts)
        try:
            yield transaction
        except _FunctionError:
            self._texts = STATEMENTS  # until somebody connects, and asks again
            raise
        finally:
            transaction.end()

    def find(self, statement: str, /, **values: object) -> Sequence[Row]:
        """Run one statement that only reads, and return its rows."""
        with self._transaction(_LOOK) as transaction:
            return transaction.rows(statement, **values)

    def find_one(self, statement: str, /, **values: object) -> Row | None:
        """Run one statement that only reads, and return its first row, if any."""
        with self._transaction(_LOOK) as transaction:
            return transaction.row(statement, **values)

    def change_quickly(self, statement: str, /, **values: object) -> Row | None:
        """Run one statement as `write_quickly` does, and return its first row, if any.

        Where a connection was cut it may be run twice.
        """
        with self._transaction(_CHANGE_QUICKLY) as transaction:
            return transaction.row(statement, **values)

    @contextmanager
    def read(self) -> Iterator[_Transaction]:
        """Read with several statements, all from one moment."""
        with self._transaction(_READ) as transaction:
            yield transaction

    @contextmanager
    def write(self, *, alone: str | None = None) -> Iterator[Transaction]:
        """Change: on disk before the block ends. Those that are `alone` under a name take turns."""
        with self._transaction(_WRITE) as transaction:
            if alone is not None:
                transaction.execute(_ALONE, {"name": number_of("alone", alone)})
            yield transaction
            transaction.commit()

    @contextmanager
    def write_quickly(self) -> Iterator[Transaction]:
        """Change what may be lost when the machine fails, without waiting for disks."""
        with self._transaction(_WRITE_QUICKLY) as transaction:
            yield transaction
            transaction.commit()

    @contextmanager
    def claim(self, key_id: str, name: str, body_mac: str) -> Iterator[_Claim]:
        """Claim an idempotency key while its create is handled, unless that was done already.

        The claim is two locks of the create's transaction, which end with it: also when the process
        is killed. Raises InFlightError.
        """
        with self._transaction(_WRITE) as transaction:
            numbers = {
                "with_body": number_of("create", key_id, name, body_mac),
                "any_body": number_of("create", key_id, name),
            }
            # After the locks, and in a statement of its own, so that it sees what was done before.
            look = self._texts["replay"], {"key": key_id, "under": name}
            locks, found = transaction.send((_CLAIM, numbers), look)
            (had,) = locks.rows
            replay = found.rows[0] if found.rows else None
            # The end of a transaction frees one lock before the other, after what it did is seen.
            if not had["is_all"] and not (had["is_only"] and replay):
                raise InFlightError(same_body=not had["is_only"])
            yield _Claim(transaction, replay)

    def version(self) -> str | None:
        """Return the version of the tables; None if there are none."""
        with self.read() as transaction:
            if not transaction.execute(_IS_VERSIONED).rows:
                return None
            row = transaction.row("version")
        return versions.UNKNOWN if row is None else str(row["version_num"])

    def scrub(self) -> None:
        """Do nothing: PostgreSQL's log and what VACUUM has not removed are its operator's."""

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()


def explain_connecting(error: psycopg.Error, where: str) -> UnavailableError:
    """Return an error of connecting as ours: only known words of its text are told."""
    text = str(error)
    reason = next((ours for theirs, ours in _REASONS.items() if theirs in text), None)
    return UnavailableError(
        f"the {where} does not answer ({reason or error.sqlstate or type(error).__name__})",
        "check that it runs, and that --database has its address and a login",
    )


_REASONS: Final[Mapping[str, str]] = {
    "password authentication failed": "the login is refused",
    "no password supplied": "it asks for a password",
    "no pg_hba.conf entry": "this user may not log in from here",
    "role ": "there is no such user",
    "database ": "there is no such database",
    "Connection refused": "nobody listens there",
    "resolve host": "the host is unknown",
    "certificate": "its certificate cannot be verified",
    "does not support SSL": "it has no TLS",
    "timeout": "it took too long",
}
"""What libpq's words mean, the first that is in its text."""


def explain(error: psycopg.Error, where: str) -> DatabaseError:
    """Return an error of psycopg as ours: its text could hold the address or values."""
    state, kind = error.sqlstate, type(error).__name__.lstrip("_")
    if isinstance(error, psycopg.errors.UndefinedFunction | psycopg.errors.AmbiguousFunction):
        return _FunctionError(f"the {where} has other functions than before ({state})")
    passes = (
        isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        if state is None
        else state[:2] in _PASSING
    )
    if passes:
        return UnavailableError(f"the {where} does not answer ({state or kind})")
    return DatabaseError(f"the {where} refused a statement: {kind} ({state})")


def read_address(address: str) -> dict[str, Any]:
    """Return the parts of an address. Raises AddressError.

    Over a network TLS is verified, unless the address says otherwise (`sslmode`).
    """
    try:
        settings = conninfo.conninfo_to_dict(address)
    except (psycopg.Error, UnicodeError):  # its text quotes the address
        settings = {}
    if not settings.get("host") or not address.startswith(("postgresql://", "postgres://")):
        raise AddressError(
            "the address is none of a PostgreSQL database",
            "write it as postgresql://USER@HOST/NAME, with :PASSWORD only in a reference",
        )
    if elsewhere := os.environ.get("PGHOSTADDR"):
        settings.setdefault("hostaddr", elsewhere)  # there libpq goes, whatever the host is
    hosts = [
        each for name in ("host", "hostaddr") for each in str(settings.get(name, "")).split(",")
    ]
    # libpq takes what stands behind the first `@` or `/` of a password for the host or the name,
    # which are told.
    told = [*(each[1:] for each in hosts), str(settings.get("dbname", ""))]
    if "@" in "".join(told) or not _PORTS.fullmatch(str(settings.get("port", ""))):
        raise AddressError(
            "the address has an @, : or / where none belongs",
            "write one that is part of a name or a password as %40, %3A or %2F",
        )
    is_here = all(each.startswith(("/", "@")) or is_loopback(each) for each in hosts if each)
    if not is_here and settings.setdefault("sslmode", "verify-full") in _VERIFYING:
        bundle = ssl.get_default_verify_paths().cafile
        settings.setdefault("sslrootcert", bundle or "system")
    return {**settings, **_CONNECTION}


def has_password(address: str) -> bool:
    """Return whether an address holds a password, or may, for it cannot be read."""
    try:
        settings = read_address(address)
    except AddressError:
        return "@" in address or "password" in address.lower()
    return not settings.keys().isdisjoint(("password", "sslpassword"))


def describe(settings: Mapping[str, Any]) -> str:
    """Return which database settings are of, without user and password."""
    name = settings.get("dbname") or settings.get("user") or ""
    return f"PostgreSQL database {name} at {settings['host']}"
