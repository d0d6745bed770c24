"""A store on either database whose clock the test moves, and what is put into it."""

from __future__ import annotations

import itertools
import json
import re
import secrets
import sqlite3
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

from sealpipe_service import webhooks
from sealpipe_service.database.access import Database, Row
from sealpipe_service.database.decisions import Access, Opening, Store
from sealpipe_service.database.sqlite import Sqlite
from sealpipe_service.database.sqlite_text import STATEMENTS

TOKEN, VERIFIER = "t" * 43, "v" * 43
CIPHERTEXT = "Y2lwaGVydGV4dA=="
HOUR = 3600.0


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


NOON = 1_800_000_000.0


class Clock:
    """The machine's time, as the test says; `tell` is called with each change."""

    def __init__(self, tell: Callable[[float], None] = lambda _: None) -> None:
        self.now = NOON
        self._tell = tell

    def __call__(self) -> float:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += seconds
        self._tell(self.now)


def open_database(address: str, clock: Clock) -> Database:
    """The database at PostgreSQL's address, in a file, or (without an address) in memory."""
    if address.startswith("postgresql:"):
        # here, as in `run_text`: a process that races on SQLite need not wait for its import
        from sealpipe_service.database.postgresql import Postgresql

        return Postgresql(address)
    return Sqlite(Path(address) if address else None, clock)


def clock_of(address: str) -> Clock:
    """A clock that moves the time of the database at an address (see `clusters`)."""
    if not address.startswith("postgresql:"):
        return Clock()

    def tell(now: float) -> None:
        run_text(address, f"UPDATE clocks.moment SET at = {now!r}")  # noqa: S608

    clock = Clock(tell)
    clock.pass_by(0)
    return clock


def run_text(address: str, text: str) -> None:
    """Run a statement of a test's own."""
    if address.startswith("postgresql:"):
        import psycopg  # as above

        with psycopg.connect(address) as connection:
            connection.execute(text.encode())
    else:
        with closing(sqlite3.connect(address)) as connection, connection:
            connection.execute(text)


PLAN = {
    "plan": "business",
    "numbers": "{}",
    "view_protection": 1,
    "zero_knowledge_enrolled": 1,
    "zero_knowledge_feature": 1,
}


def nothing_in(statement: str) -> dict[str, None]:
    """None for each column that a statement fills, but for the code."""
    return dict.fromkeys(set(re.findall(r":(\w+)", STATEMENTS[statement])) - {"short_code"})


class World:
    """A store, at an address or in memory, with shares and requests of one space."""

    def __init__(self, address: str = "") -> None:
        self.clock = clock_of(address)
        self.database = open_database(address, self.clock)
        self.store = Store(self.database)
        self._numbers = itertools.count()
        self._salt = secrets.token_hex(4)

    def code(self) -> str:
        return f"{self._salt}-{next(self._numbers):07d}"

    def columns(self, **values: Any) -> dict[str, Any]:
        """The columns of a share, but for its code."""
        return {
            **nothing_in("add_share"),
            "space": "acme",
            "owner": "acme",
            "key_id": "k" * 16,
            "created_at": self.store.now(),
            "encryption_type": "e2ee-aes256-gcm",
            "data": CIPHERTEXT,
            "access_token_sha256": digest(TOKEN),
            "passcode_attempts_left": 5,
            "custody": "none",
            **values,
        }

    def share(self, name: str | None = None, *, most: int | None = None, **values: Any) -> str:
        """Create a share under an idempotency key, and return its code."""
        row = self.columns(**values)
        with self.store.claim("k" * 16, name or self.code(), digest("body")) as creating:
            if creating.replay is not None:
                return creating.replay.decode()
            return creating.create("shares", row, str.encode, self.code, most=most).decode()

    def request(self, **values: Any) -> str:
        """Create a request, and return its code."""
        row = {
            **nothing_in("add_request"),
            "space": "acme",
            "owner": "acme",
            "key_id": "k" * 16,
            "created_at": self.store.now(),
            "title": "title",
            "public_key": "key",
            "fields": "[]",
            "expired_at": "in an hour",
            "expires": self.store.now() + HOUR,
            "received": 0,
            **values,
        }
        with self.store.claim("k" * 16, self.code(), digest("body")) as creating:
            return creating.create("requests", row, str.encode, self.code).decode()

    def key(self, name: str = "k", **values: object) -> bool:
        """Add a key, of which a space may have two; return whether its id is new."""
        row = {
            "key_id": name * 16,
            "account": "acme",
            "organization": None,
            "space": "acme",
            "name": "key",
            "auth_sha256": digest(name),
            "scopes": "[]",
            "custody_requested": 1,
            "custody_public_key": None,
            "created_at": self.clock.now,
            "custody_sha256": None,
            **dict.fromkeys(("last_used_at", "revoked_at", "compromised_at", "granted_at")),
            **values,
        }
        return self.store.add_key(row, lambda _: 2)

    def request_row(self, code: str) -> Row:
        row, _ = self.store.request("acme", code)
        assert row is not None
        return row

    def open(self, code: str, verifier: str | None = None, access: Access | None = None) -> Opening:
        proof = None if verifier is None else digest(verifier)
        return self.store.open_share(code, digest(TOKEN), proof, access)

    def delete(self, code: str) -> bool:
        ended = self.store.delete_share("acme", code, b"{}", lambda *_: True, lambda: None)
        return ended is not None

    def end_request(self, code: str) -> str | None:
        return self.store.delete_request("acme", code, lambda: None)

    def submit(self, code: str) -> str | None:
        values = {"created_at": "now", "encryption_type": "e2ee-aes256-gcm", "data": CIPHERTEXT}
        number = self.request_row(code)["number"]
        return self.store.submit(number, lambda _: values, self.code)

    def mail(self, account: str = "acme") -> None:
        """Let an account's notices go to an address of e-mail."""
        webhooks.add_mail(self.store, account, "ann@acme.example", secrets.token_bytes(9))

    def notices(self) -> list[tuple[str, str]]:
        """Of which event of what each notice is that waits, oldest first."""
        told = [json.loads(bytes(row["body"])) for row in self.store.deliveries()]
        return [(each["notice"], each["short_code"]) for each in told if "notice" in each]

    def has_ciphertext(self, code: str) -> bool:
        """Whether a share's ciphertext is still there, which no statement of the service tells."""
        where = f"short_code = '{code}' AND data IS NOT NULL"
        text = f"SELECT 1 FROM shares WHERE {where}"  # noqa: S608
        if isinstance(self.database, Sqlite):
            return bool(self.database.run_text(text))
        with self.database.read() as transaction:
            return bool(transaction.execute(text.encode()).rows)  # type: ignore[attr-defined]

    def counted(self) -> tuple[int, int]:
        """How many shares are usable, and how many have ended."""
        live, ended, _ = self.store.stats("acme")
        return live, ended
