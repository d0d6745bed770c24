"""A service of one's own: `sealpipe server init` and `run`, as their operator types them."""

from __future__ import annotations

import shlex
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import psycopg
from psycopg.rows import dict_row

from sealpipe.cli.server.keys import add_key
from sealpipe.secret import Secret
from sealpipe_rehearsal.database import TABLES
from sealpipe_rehearsal.people import Recipient, Submitter
from sealpipe_service import administration
from sealpipe_service.clock import from_timestamp
from sealpipe_service.credentials import EXTENDED_SCOPES
from sealpipe_service.database.access import Row
from sealpipe_service.database.decisions import Store
from sealpipe_service.database.opening import file_of, open_database
from support.ports import free_port
from support.terminal import PATIENCE, Done, Terminal

SERVING = "serving "


@dataclass
class OwnService:
    """A service's machine: its operator's terminal, its database, and where it is reached.

    `database` is what its operator writes: the address, or a reference to it.
    """

    operator: Terminal
    database: str
    address: str
    public_url: str
    exports: dict[str, str]

    def command(self, *words: str) -> Done:
        """Run `sealpipe server WORDS` on its database."""
        return self.operator.sealpipe("server", *words, "--database", self.database)

    def start(self, *words: str, listen: str | None = None) -> subprocess.Popen[str]:
        """Run it, until it says that it serves. Behind a proxy it listens elsewhere.

        Its processes may have answered by then, and logged it.
        """
        where = listen or self.public_url.partition("://")[2]
        options = ["--database", self.database, "--public-url", self.public_url]
        process = self.operator.start("server", "run", *options, "--listen", where, *words)
        assert process.stderr is not None
        said = []
        for line in iter(process.stderr.readline, ""):
            said.append(line)
            if SERVING in line:
                return process
        raise AssertionError((said, process.communicate(timeout=PATIENCE)))

    @contextmanager
    def running(self, *words: str, listen: str | None = None) -> Iterator[subprocess.Popen[str]]:
        """Run it, and stop it at the end as a machine does that shuts down.

        Its log is read meanwhile, or it would wait for that.
        """
        process = self.start(*words, listen=listen)
        reader = threading.Thread(target=process.communicate)
        reader.start()
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            reader.join(PATIENCE)
            assert process.returncode == 0

    def client(self, place: Path) -> Terminal:
        """A client on another machine, with the exports that `init` printed."""
        return Terminal(place, **self.exports)


def stop(process: subprocess.Popen[str]) -> int:
    """Tell a service to stop, and return its exit code."""
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    return process.returncode


def make_own_service(
    place: Path, address: str | None = None, *words: str, url: str | None = None
) -> OwnService:
    """Make the database of a service, and read what `init` prints.

    An address of PostgreSQL is in the operator's environment, and named by reference.
    """
    operator = Terminal(place)
    if address is None:
        database = address = f"sqlite:///{operator.here / 'service.db'}"
    else:
        database, operator.environ["DBURL"] = "env:DBURL", address
    url = url or f"http://127.0.0.1:{free_port()}"
    where = ["--database", database, "--public-url", url]
    done = operator.sealpipe("server", "init", *where, *words)
    assert done.code == 0, done
    return OwnService(operator, database, address, url, read_exports(done.out))


def read_exports(out: str) -> dict[str, str]:
    """Return what lines of `export NAME=VALUE` set."""
    lines = [shlex.split(line) for line in out.splitlines()]
    assert all(word == "export" for word, _ in lines)
    return dict(value.split("=", 1) for _, value in lines)


def list_workers(process: subprocess.Popen[str]) -> Sequence[int]:
    """Return the processes that serve for a supervisor."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(each) for each in children.split()]


def wait_for(condition: object, seconds: float = PATIENCE) -> None:
    """Wait until a call returns something that is true."""
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


class OwnRunning:
    """A service of one's own that runs, with the methods of a rehearsal that tests call.

    What a server has no way to do (forget all, let time pass) the test does in its database.
    """

    def __init__(self, own: OwnService) -> None:
        self.own = own
        self.store = Store(open_database(own.address))
        self.origin = own.public_url
        self.base_url = f"{own.public_url}/v1"
        self.link_base_url = f"{own.public_url}/s"
        self.service_tag = self.store.tag()
        clock = SimpleNamespace(now=lambda: from_timestamp(self.store.now()))
        self.service = SimpleNamespace(extended=True, clock=clock)

    def create_key(
        self,
        *,
        name: str = "test",
        scopes: Iterable[str] | None = None,
        account: str = "default",
        organization: str | None = None,
        custody: str = "self",
    ) -> Secret:
        """Create a key, with every scope unless told, as `server key create` does."""
        return add_key(
            self.store,
            name=name,
            scopes=frozenset(EXTENDED_SCOPES if scopes is None else scopes),
            custody=custody,
            account=account,
            organization=organization,
        )

    def set_account(
        self, name: str = "default", *, at_once: bool = True, **changes: object
    ) -> None:
        """Change an account."""
        administration.change_account(self.store, name, changes, at_once=at_once)

    def revoke_key(self, credential: Secret) -> None:
        """Revoke a key."""
        assert self.store.revoke(credential.reveal().partition("_sk_live_")[2].partition(".")[0])

    def recipient(self) -> Recipient:
        """A person who has been sent a share's link."""
        return Recipient(self.origin)

    def submitter(self) -> Submitter:
        """A person who has been sent a collect link."""
        return Submitter(self.origin)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        text = "UPDATE clock SET offset_seconds = offset_seconds + {!r}"
        self._run(text.format(seconds))

    def reset(self) -> None:
        """Forget all but the service's tag."""
        for table in TABLES:
            self._run(f"DELETE FROM {table}")  # noqa: S608
        self._run("UPDATE clock SET offset_seconds = 0")

    def mend(self) -> None:
        """Do nothing: no fault is planned."""

    def close(self) -> None:
        """Close the connections of this process."""
        self.store.close()

    def read(self, text: str) -> Sequence[Row]:
        """Return the rows of a statement of the test's own."""
        file = file_of(self.own.address)
        if file is None:
            with psycopg.connect(self.own.address, row_factory=dict_row) as connection:
                return connection.execute(text.encode()).fetchall()
        with closing(sqlite3.connect(file, timeout=PATIENCE)) as database:
            database.row_factory = sqlite3.Row
            return database.execute(text).fetchall()

    def _run(self, text: str) -> None:
        file = file_of(self.own.address)
        if file is None:
            with psycopg.connect(self.own.address) as connection:
                connection.execute(text.encode())
            return
        with closing(sqlite3.connect(file, timeout=PATIENCE)) as database, database:
            database.execute(text)
