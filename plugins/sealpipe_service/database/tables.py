"""The tables, in SQLAlchemy Core.

Their types need no processing by any driver: text, whole numbers, doubles and bytes. Times are
seconds since 1970 by the service's clock; what is true is 1.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
)
from sqlalchemy.schema import SchemaItem

METADATA = MetaData()
_NUMBER = BigInteger().with_variant(Integer, "sqlite")  # only INTEGER counts by itself there


def _number() -> Column[Any]:
    return Column("number", _NUMBER, primary_key=True, autoincrement=True)


def _text(name: str, **options: Any) -> Column[Any]:
    return Column(name, Text, **{"nullable": False, **options})


def _whole(name: str, **options: Any) -> Column[Any]:
    return Column(name, BigInteger, **{"nullable": False, **options})


def _time(name: str, **options: Any) -> Column[Any]:
    return Column(name, Double, **{"nullable": False, **options})


def _make(name: str, *parts: SchemaItem) -> Table:
    return Table(name, METADATA, *parts, sqlite_autoincrement=True)  # no number is given twice


service_version = Table(
    "service_version",
    METADATA,
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="service_version_pkc"),
)
"""One row: the version of these tables. Made as Alembic makes it, which upgrades them
(`migrating`).
"""

clock = _make(
    "clock",
    Column("id", Integer, primary_key=True, autoincrement=False),
    _time("offset_seconds"),
    CheckConstraint("id = 1"),
)
"""One row. The service only reads it: a rehearsal moves its clock here."""

service = _make(
    "service",
    Column("id", Integer, primary_key=True, autoincrement=False),
    _text("tag"),
    CheckConstraint("id = 1"),
)
"""What a server was made with: one row, or none in a rehearsal."""

accounts = _make(
    "accounts",
    _number(),
    _text("name"),
    _time("seen_from"),
    _text("plan"),
    _text("numbers"),
    _whole("view_protection"),
    _whole("zero_knowledge_enrolled"),
    _whole("zero_knowledge_feature"),
)
"""Versions of accounts and organisations. The latest is the plan; calls see the latest whose
`seen_from` has come.
"""
Index("accounts_by_name", accounts.c.name, accounts.c.number)

keys = _make(
    "keys",
    _number(),
    _text("key_id", unique=True),
    _text("account"),
    _text("organization", nullable=True),
    _text("space"),
    _text("name"),
    _text("auth_sha256"),
    _text("scopes"),
    _whole("custody_requested"),
    _text("custody_public_key", nullable=True),
    _time("created_at"),
    _time("last_used_at", nullable=True),
    _time("revoked_at", nullable=True),
    _time("compromised_at", nullable=True),
    _time("granted_at", nullable=True),
    _text("custody_sha256", nullable=True),
)
"""`space` owns what the key can use: its organisation or its account."""
Index("keys_of", keys.c.space)

rates = _make("rates", _text("key_id", primary_key=True), _time("tokens"), _time("at"))

shares = _make(
    "shares",
    _number(),
    _text("short_code", unique=True),
    _text("space"),
    _text("owner"),
    _text("key_id"),
    _time("created_at"),
    _text("encryption_type"),
    _text("access_token_sha256"),
    _text("passcode_verifier_sha256", nullable=True),
    _text("title", nullable=True),
    _text("description", nullable=True),
    _text("expired_at", nullable=True),
    _time("expires", nullable=True),
    _whole("access_counts_left", nullable=True),
    _whole("passcode_attempts_left"),
    _text("item_key_wrap", nullable=True),
    _text("custody"),
    _whole("timed_view", nullable=True),
    _text("notify_on", nullable=True),
    _text("organization_id", nullable=True),
    _time("ended_at", nullable=True),
    _text("ended_by", nullable=True),
    _text("data", nullable=True),
)
"""The ciphertext is last: SQLite reads through all of it to a column that comes after."""

requests = _make(
    "requests",
    _number(),
    _text("short_code", unique=True),
    _text("space"),
    _text("owner"),
    _text("key_id"),
    _time("created_at"),
    _text("title"),
    _text("public_key"),
    _text("fields"),
    _text("description", nullable=True),
    _text("expired_at"),
    _time("expires"),
    _whole("max_submission", nullable=True),
    _whole("received"),
    _whole("access_counts_left", nullable=True),
    _text("passcode_sha256", nullable=True),
    _whole("requires_login", nullable=True),
    _whole("requires_mfa", nullable=True),
    _text("restricted_domain", nullable=True),
    _text("ip_whitelist", nullable=True),
    _text("organization_id", nullable=True),
    _time("ended_at", nullable=True),
    _text("ended_by", nullable=True),
)

submissions = _make(
    "submissions",
    _number(),
    _text("short_code", unique=True),
    _whole("request"),
    _text("created_at"),
    _text("encryption_type"),
    _text("data"),
)
Index("submissions_of", submissions.c.request, submissions.c.number)

_sealed = shares.c.ended_at.is_not(None) & shares.c.data.is_not(None)
Index(
    "shares_sealed", shares.c.ended_at, sqlite_where=_sealed, postgresql_where=_sealed
)  # whose ciphertext has to go

# A page costs the same with ten rows and with a million.
for _each in (shares, requests):
    _live = _each.c.ended_at.is_(None)
    _ended = _each.c.ended_at.is_not(None)
    for _name, _columns, _where in (
        ("live", (_each.c.space, _each.c.number), _live),
        ("due", (_each.c.space, _each.c.expires), _live & _each.c.expires.is_not(None)),
        ("next", (_each.c.expires,), _live & _each.c.expires.is_not(None)),
        ("ended", (_each.c.space, _each.c.ended_at, _each.c.number), _ended),
    ):
        Index(f"{_each.name}_{_name}", *_columns, sqlite_where=_where, postgresql_where=_where)

counts = _make(
    "counts",
    _text("what"),
    _text("space"),
    _whole("live"),
    _whole("ended"),
    PrimaryKeyConstraint("what", "space"),
)
"""How many shares and requests a space has: who ends one counts it in the same transaction."""

views = _make(
    "views",
    _text("space"),
    _text("day"),
    _whole("count"),
    PrimaryKeyConstraint("space", "day"),
)

accesses = _make(
    "accesses",
    _number(),
    _whole("share"),
    _time("accessed"),
    _text("accessed_at"),
    _text("accessed_ip"),
    _text("platform"),
    _text("user_agent", nullable=True),
    _whole("failed_passcode"),
    _whole("signed_in"),
    _text("space"),
)
"""The access logs of shares, for as long as the plan of the share's space keeps them."""
Index("accesses_of", accesses.c.share, accesses.c.number)
Index("accesses_old", accesses.c.space, accesses.c.accessed)

idempotency = _make(
    "idempotency",
    _text("key_id"),
    _text("name"),
    _text("body_mac"),
    Column("answer", LargeBinary, nullable=False),
    _time("created_at"),
    PrimaryKeyConstraint("key_id", "name"),
)
"""The answers of creates that succeeded, under their keys."""
Index("idempotency_old", idempotency.c.created_at)

webhooks = _make(
    "webhooks",
    _number(),
    _text("id", unique=True),
    _text("account"),
    _text("url"),
    _text("secret"),
    _text("previous_secret", nullable=True),
    _time("created_at"),
    _time("rotated_at", nullable=True),
)
Index("webhooks_of", webhooks.c.account, webhooks.c.number)

deliveries = _make(
    "deliveries",
    _number(),
    _text("webhook"),
    Column("body", LargeBinary, nullable=False),
    _time("created_at"),
    _whole("attempts"),
    _time("due", nullable=True),
    _time("leased_until", nullable=True),
    _text("state"),
    _text("answered", nullable=True),
)
"""A delivery that is being sent is leased, so that no other process sends it."""
_waiting = deliveries.c.due.is_not(None)
Index(
    "deliveries_due",
    *(deliveries.c[name] for name in ("due", "number")),
    sqlite_where=_waiting,
    postgresql_where=_waiting,
)
Index("deliveries_waiting", deliveries.c.webhook, sqlite_where=_waiting, postgresql_where=_waiting)
_leased = deliveries.c.leased_until.is_not(None)
Index("deliveries_leased", deliveries.c.webhook, sqlite_where=_leased, postgresql_where=_leased)
