"""What is done again and again looks at few rows, however many there are."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pytest

from sealpipe_service.database.access import Transaction
from sealpipe_service.database.postgresql import STATEMENTS as ON_POSTGRESQL
from sealpipe_service.database.sqlite_text import STATEMENTS as ON_SQLITE
from sealpipe_service.database.statements import PER_SWEEP
from sealpipe_service.plans import PLANS
from service.database.stores import NOON, PLAN, World, run_text

MANY, FEW = 20_000, 100
INSTRUCTIONS = 20
"""What SQLite does for a row, at the most."""
OFTEN = (
    *("is_due", "sweep_shares", "sweep_requests"),
    *("drop_ciphertext", "drop_accesses", "drop_records"),
    *("count_shares", "count_requests", "list_shares", "list_requests"),
    *("list_ended_shares", "list_ended_requests"),
)
"""What each process does twice a minute, and pages of lists."""
VALUES: Mapping[str, object] = {
    "in_space": "acme",
    "most": 25,
    "skipped": 0,
    "of_plan": "business",
    "older_than": 86_400.0 * PLANS["business"].access_log_days,
}

NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {})"
SHARES = """ INSERT INTO shares (short_code, space, owner, key_id, created_at, encryption_type,
    data, access_token_sha256, expires, passcode_attempts_left, custody, ended_at, ended_by)
    SELECT 's' || i, 'acme', 'acme', 'k', 1.0, 'e', CASE WHEN i % 2 = 0 THEN 'data' END,
    'sha256', {later} + i, 5, 'none', CASE WHEN i % 2 = 1 THEN 1.0 * i END, 'time' FROM n"""
REQUESTS = """ INSERT INTO requests (short_code, space, owner, key_id, created_at, title,
    public_key, fields, expired_at, expires, received, ended_at, ended_by)
    SELECT 'r' || i, 'acme', 'acme', 'k', 1.0, 'title', 'key', '[]', 'later', {later} + i, 0,
    CASE WHEN i % 2 = 1 THEN 1.0 * i END, 'time' FROM n"""
ACCESSES = """ INSERT INTO accesses (share, accessed, accessed_at, accessed_ip, platform,
    failed_passcode, signed_in, space)
    SELECT i, {noon}, 'noon', '192.0.2.1', 'Linux', 0, 0, 'acme' FROM n"""
RECORDS = """ INSERT INTO idempotency (key_id, name, body_mac, answer, created_at)
    SELECT 'k', 'n' || i, 'mac', CAST('answer' AS {blob}), {noon} FROM n"""


def test_what_is_done_again_and_again_looks_at_few_rows(address: str, shared: World) -> None:
    shared.store.change_account("acme", PLAN, dict, at_once=True)
    fill(address, MANY, later=NOON + 1e6)
    counted = "('shares', 'acme', 1, 1), ('requests', 'acme', 1, 1)"
    run_text(address, f"INSERT INTO counts VALUES {counted}")  # noqa: S608
    found = dict(look_at(address))
    assert {name: rows for name, rows in found.items() if rows > FEW} == {}
    assert list(found) == list(OFTEN)


def test_what_has_waited_for_a_sweep_goes_by_steps(
    address: str, shared: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A create waits for one of them, and none takes so long that PostgreSQL gives it up."""
    shared.store.change_account("acme", PLAN, dict, at_once=True)
    fill(address, 2_500, later=1.0)
    shared.clock.pass_by(400 * 86_400)
    steps: list[int] = []
    database = shared.database
    write = database.write

    @contextmanager
    def counting(*, alone: str | None = None) -> Iterator[Transaction]:
        steps.append(0)
        with write(alone=alone) as transaction, monkeypatch.context() as patched:
            change = transaction.change

            def count(statement: str, /, **values: object) -> int:
                changed = change(statement, **values)
                steps[-1] += changed
                return changed

            patched.setattr(transaction, "change", count)
            yield transaction

    monkeypatch.setattr(database, "write", counting)
    shared.store.sweep()
    assert sum(steps) >= 1_250 + 2_500 + 2_500, "ciphertext, accesses and records"
    assert max(steps) <= PER_SWEEP


def fill(address: str, count: int, *, later: float) -> None:
    """Put in so many of all: of shares and requests half have ended, the others do `later`."""
    blob = "BYTEA" if address.startswith("postgresql:") else "BLOB"
    for text in (SHARES, REQUESTS, ACCESSES, RECORDS):
        values = text.format(later=later, noon=NOON, blob=blob)
        run_text(address, NUMBERS.format(count) + values)


def look_at(address: str) -> Iterator[tuple[str, int]]:
    """How many rows each statement looks at."""
    return (look_at_postgresql if address.startswith("postgresql:") else look_at_sqlite)(address)


def look_at_sqlite(address: str) -> Iterator[tuple[str, int]]:
    """By the instructions that it takes. Nothing ever analyzes its tables."""
    instructions = 0

    def count() -> None:
        nonlocal instructions
        instructions += 1

    with closing(sqlite3.connect(address)) as connection:
        connection.create_function("clock_timestamp", 0, lambda: NOON)
        connection.set_progress_handler(count, 1)
        for name in OFTEN:
            instructions = 0
            connection.execute(ON_SQLITE[name], VALUES).fetchall()
            yield name, instructions // INSTRUCTIONS


def look_at_postgresql(address: str) -> Iterator[tuple[str, int]]:
    """As it tells itself, once it has analyzed its tables, as it does by and by."""
    run_text(address, "ANALYZE")
    with psycopg.connect(address, cursor_factory=psycopg.ClientCursor) as connection:
        for name in OFTEN:
            explain = f"EXPLAIN (ANALYZE, FORMAT JSON) {ON_POSTGRESQL[name].decode()}"
            ((told,),) = connection.execute(explain.encode(), VALUES).fetchall()
            yield name, _count_rows(told[0]["Plan"])


def _count_rows(plan: Mapping[str, Any]) -> int:
    own = int(plan["Actual Rows"]) + int(plan.get("Rows Removed by Filter", 0))
    return plan["Actual Loops"] * own + sum(map(_count_rows, plan.get("Plans", ())))
