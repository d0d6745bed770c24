"""Batches in the process of the tests: a rehearsal service without sockets, its people, and one
clock for everything.

The service's handlers are called as its server calls them. The database's clock and the service's
move together.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from email.utils import format_datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

from cli.batch.pigeons import LOFTS, Loft
from sealpipe.api.operation import Credential, Failure, Operation, Response
from sealpipe.batch.database.opening import open_database, open_store
from sealpipe.batch.database.records import Row
from sealpipe.batch.database.store import BatchStore
from sealpipe.batch.engine.actions import Outcome, Verb, act
from sealpipe.batch.engine.adopt import Adopted
from sealpipe.batch.engine.advance import Engine
from sealpipe.batch.engine.plan import BatchPlan
from sealpipe.batch.engine.run import RunResult
from sealpipe.batch.engine.session import adopt, open_engine, run_batch
from sealpipe.batch.engine.sync import make_plan
from sealpipe.batch.file.reading import read_definition
from sealpipe.batch.steps.content import RowContent
from sealpipe.batch.steps.states import Progress
from sealpipe.minting import mint
from sealpipe.network.plugin_network import PluginNetwork
from sealpipe.network.rate_limiter import RateLimiter
from sealpipe.plugin import Message
from sealpipe.registry import Registry
from sealpipe.registry.catalog import BUILT_IN
from sealpipe.registry.stores import PolicyHook
from sealpipe.secret import Secret
from sealpipe.session import Session
from sealpipe.wire import fields, sealed_box
from sealpipe.wire.encoding import decode_base64url
from sealpipe.wire.fields import Field
from sealpipe_rehearsal import control
from sealpipe_rehearsal.application import is_control
from sealpipe_rehearsal.clock import MovableClock
from sealpipe_rehearsal.database import RehearsalDatabase
from sealpipe_rehearsal.log import Log
from sealpipe_rehearsal.rehearsed import RehearsedService
from sealpipe_service import app, listing
from sealpipe_service.context import HttpRequest
from sealpipe_service.credentials import EXTENDED_SCOPES, SCOPES
from sealpipe_service.database.decisions import Store

BASE_URL, LINK_BASE_URL = "http://127.0.0.1:9/v1", "http://127.0.0.1:9/s"
DAY = 86400.0


class DirectNetwork:
    """Sends operations to a service in this process.

    `before` may fail them; `log` has method and path of each.
    """

    def __init__(self, service: RehearsedService, credential: Credential) -> None:
        self._service = service
        self._header = credential.header().reveal()
        self.limiter = RateLimiter()
        self.log: list[tuple[str, str]] = []
        self.before: Callable[[Operation[Any]], Failure | Response | None] = lambda _: None
        self.after: Callable[[Operation[Any], Response], Failure | Response] = lambda _, response: (
            response
        )

    def send(self, operation: Operation[Any], *_: object) -> Response | Failure:
        result = self.before(operation)
        if result is not None:
            return result
        self.log.append((operation.method, operation.path))
        headers = (
            *operation.headers.items(),
            ("authorization", self._header),
            ("host", "127.0.0.1"),
        )
        segments = ("v1", *(unquote(each) for each in operation.path.strip("/").split("/")))
        request = HttpRequest(
            operation.method,
            segments,
            dict(operation.query),
            tuple(headers),
            bytes(operation.body or b""),
        )
        done = ask_service(self._service, request)
        date = format_datetime(self._service.clock.now(), usegmt=True)
        return self.after(
            operation, Response(done.status, {**dict(done.headers), "date": date}, done.body)
        )

    def close(self) -> None:
        pass


def ask_service(service: RehearsedService, request: HttpRequest) -> Any:
    if is_control(request):
        return control.handle(service, request)
    return app.find_handler(request)(service, request)


class BatchWorld:
    """One account at a service, with its people; `folder` has the batch file and the database."""

    def __init__(
        self,
        folder: Path,
        *,
        extended: bool = False,
        per_minute: int = 1_000_000,
        database: Secret | None = None,
    ) -> None:
        self.folder = folder
        self.database = database
        database = RehearsalDatabase()
        self.clock = MovableClock(database)
        self.service = RehearsedService(
            Store(database),
            self.clock,
            Log(),
            "svc",
            secrets.token_bytes,
            database=database,
            extended=extended,
        )
        self.loft_name = secrets.token_hex(8)
        self.loft = LOFTS[self.loft_name] = Loft()
        self.api_key = self.make_key()
        set_account(self.service, requests_per_minute=per_minute)
        self.sessions: list[Session] = []
        self.elapsed = 0.0
        self.store = self.open_store()

    def close(self) -> None:
        self.store.close()
        self.service.store.close()
        del LOFTS[self.loft_name]

    # -- keys and clients

    def make_key(self, **options: Any) -> str:
        """Register a key with every scope, and return its credential."""
        minted = mint("svc")
        body = {
            "key_id": minted.key_id,
            "auth_sha256": minted.auth_sha256,
            "name": "batch",
            "scopes": list(EXTENDED_SCOPES if self.service.extended else SCOPES),
            "custody": "self",
            "custody_public_key": minted.custody_public_key,
            **options,
        }
        done = ask_control(self.service, "POST", ("rehearsal", "keys"), body)
        assert done.status in (200, 201), done.body
        return minted.credential.reveal()

    def session(self, previous: str | None = None) -> Session:
        environ = {**self.environ, "LOFT": self.loft_name}
        registry = Registry(
            environ=environ,
            network=lambda: PluginNetwork(None),
            built_in=(*BUILT_IN, "cli.batch.pigeons"),
        )
        session = Session(
            Credential.parse(self.api_key),
            BASE_URL,
            LINK_BASE_URL,
            lambda: registry,
            policy_hooks=self.hooks,
            previous=None if previous is None else Credential.parse(previous),
            batch_rows_per_hour=self.rows_per_hour,
        )
        network = self.network = DirectNetwork(self.service, session.credential)
        session.transport.open_network = lambda _: network
        self.network.before, self.network.after = self.before, self.after
        return session

    def open_store(self, previous: str | None = None) -> BatchStore:
        database = open_database(self.folder / "state", self.database)
        before = None if previous is None else Credential.parse(previous)
        # A kill loses nothing that is written; only a power cut does, and this is none.
        if self.database is None:
            database.read("PRAGMA synchronous = OFF")
        store = open_store(database, Credential.parse(self.api_key), BASE_URL, previous=before)
        store.clock_offset = round(self.elapsed * 1_000_000)
        return store

    environ: Mapping[str, str] = MappingProxyType({})
    """What the plugins' settings are read from."""
    hooks: tuple[PolicyHook, ...] = ()
    rows_per_hour: int | None = None
    before: Callable[[Operation[Any]], Failure | Response | None] = staticmethod(lambda _: None)
    after: Callable[[Operation[Any], Response], Failure | Response] = staticmethod(
        lambda _, response: response
    )

    # -- the file

    def write(
        self, text: str, rows: Sequence[Mapping[str, str]] | None = None, name: str = "batch.toml"
    ) -> Path:
        path = self.folder / name
        path.write_text(text)
        if rows is not None:
            header = list(rows[0])
            lines = [",".join(header), *(",".join(row[each] for each in header) for row in rows)]
            (self.folder / "rows.csv").write_text("\n".join(lines) + "\n")
        return path

    def rotate(self, **options: Any) -> str:
        """Take a new key of the account, and open the database with both. Returns the old key."""
        old, self.api_key = self.api_key, self.make_key(**options)
        self.store.close()
        self.store = self.open_store(previous=old)
        return old

    # -- what a machine does

    def run(
        self, path: Path, *, threads: int = 1, previous: str | None = None, **options: Any
    ) -> RunResult:
        """One run of a file, as a scheduled job does it."""
        return run_batch(
            self.session(previous), self.store, read_definition(path), threads=threads, **options
        )

    def engine(self, path: Path) -> Engine:
        return open_engine(self.session(), self.store, read_definition(path).name)

    def act(self, path: Path, verb: Verb, *keys: str) -> list[Outcome]:
        return act(self.engine(path), verb, keys)

    def adopt(self, path: Path) -> list[Adopted]:
        return adopt(self.session(), self.store, read_definition(path))

    def plan(self, path: Path) -> BatchPlan:
        return make_plan(self.store, read_definition(path), BASE_URL, self.rows_per_hour)

    def actions(self, path: Path) -> dict[str, str]:
        return {row.key: row.action for row in self.plan(path).rows}

    def rows(self, path: Path) -> dict[str, Row]:
        batch = self.store.find_batch(read_definition(path).name)
        assert batch is not None
        return {row.key or "": row for row in self.store.list_rows(batch, contents=True)}

    def states(self, path: Path) -> dict[str, str]:
        return {key: row.state for key, row in self.rows(path).items()}

    def progress(self, path: Path, key: str) -> Progress:
        return RowContent.load(self.rows(path)[key]).progress

    def history(self, path: Path, key: str) -> list[str]:
        return [
            str(event.content["what"]) for event in self.store.read_history(self.rows(path)[key])
        ]

    # -- time

    def wait(self, seconds: float) -> None:
        """Let time pass, for the service and for the database."""
        self.elapsed += seconds
        self.clock.advance(seconds)
        self.store.clock_offset = round(self.elapsed * 1_000_000)

    # -- people

    def submit(
        self, code: str, values: Mapping[str, str] | None = None, data: str | None = None
    ) -> str:
        """Somebody fills in the form; returns the submission's code.

        AssertionError if the service refuses.
        """
        row = self.service.database.row(
            "SELECT * FROM requests WHERE short_code = :code", {"code": code}
        )
        assert row is not None
        if data is None:
            prompts = json.loads(row["fields"])
            filled = [
                Field(each["item"], (values or {}).get(each["item"], "canary"), each["type"])
                for each in prompts
            ]
            data = sealed_box.seal(decode_base64url(row["public_key"]), fields.dump(filled))
        done = ask_control(
            self.service, "POST", ("links", "requests", code, "submit"), {"data": data}
        )
        assert done.status == 201, done.body
        return str(json.loads(done.body)["short_code"])

    def messages(self, to: str) -> list[Message]:
        return self.loft.sent_to(to)

    def code_of(self, to: str) -> str:
        """The short code in the latest message."""
        return self.messages(to)[-1].short_code

    def active_requests(self) -> list[str]:
        return [row["short_code"] for row in self._list("requests") if row["ended_at"] is None]

    def all_requests(self) -> list[str]:
        return [row["short_code"] for row in self._list("requests")]

    def all_shares(self) -> list[str]:
        return [row["short_code"] for row in self._list("shares")]

    def _list(self, table: str) -> list[Any]:
        listing.sweep(self.service)
        return list(self.service.database.rows(f"SELECT * FROM {table}", {}))  # noqa: S608


def ask_control(
    service: RehearsedService, method: str, segments: tuple[str, ...], body: Mapping[str, Any]
) -> Any:
    headers = (("host", "127.0.0.1"), ("content-type", "application/json"))
    return ask_service(
        service, HttpRequest(method, segments, {}, headers, json.dumps(body).encode())
    )


def set_account(service: RehearsedService, **changes: Any) -> None:
    """Change the account's limits."""
    done = ask_control(service, "POST", ("rehearsal", "accounts", "default"), changes)
    assert done.status in (200, 204), (done.status, done.body)


UNREACHABLE = Failure(sent=False, detail="connection refused")


def fail_with(result: Response | Failure, method: str = "") -> Any:
    def before(operation: Operation[Any]) -> Response | Failure | None:
        return result if method in ("", operation.method) else None

    return before
