"""The SQLite schema of the store."""

from __future__ import annotations

_TABLES = """
CREATE TABLE IF NOT EXISTS accounts (
    name TEXT PRIMARY KEY,
    plan TEXT NOT NULL,
    numbers TEXT NOT NULL,
    view_protection INTEGER NOT NULL,
    zero_knowledge_enrolled INTEGER NOT NULL,
    zero_knowledge_feature INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS keys (
    key_id TEXT PRIMARY KEY,
    account TEXT NOT NULL,
    organization TEXT,
    name TEXT NOT NULL,
    auth_sha256 TEXT NOT NULL,
    scopes TEXT NOT NULL,
    custody_requested INTEGER NOT NULL,
    custody_public_key TEXT,
    created_at REAL NOT NULL,
    last_used_at REAL,
    revoked_at REAL,
    compromised_at REAL,
    granted_at REAL,
    custody_sha256 TEXT
);
CREATE TABLE IF NOT EXISTS shares (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    short_code TEXT NOT NULL UNIQUE,
    space TEXT NOT NULL,
    owner TEXT NOT NULL,
    key_id TEXT NOT NULL,
    created_at REAL NOT NULL,
    encryption_type TEXT NOT NULL,
    data TEXT NOT NULL,
    access_token_sha256 TEXT NOT NULL,
    passcode_verifier_sha256 TEXT,
    title TEXT,
    description TEXT,
    expired_at TEXT,
    expires REAL,
    access_counts_left INTEGER,
    passcode_attempts_left INTEGER NOT NULL,
    item_key_wrap TEXT,
    custody TEXT NOT NULL,
    timed_view INTEGER,
    notify_on TEXT,
    organization_id TEXT,
    ended_at REAL,
    ended_by TEXT
);
CREATE TABLE IF NOT EXISTS requests (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    short_code TEXT NOT NULL UNIQUE,
    space TEXT NOT NULL,
    owner TEXT NOT NULL,
    key_id TEXT NOT NULL,
    created_at REAL NOT NULL,
    title TEXT NOT NULL,
    public_key TEXT NOT NULL,
    fields TEXT NOT NULL,
    description TEXT,
    expired_at TEXT NOT NULL,
    expires REAL NOT NULL,
    max_submission INTEGER,
    access_counts_left INTEGER,
    passcode_sha256 TEXT,
    requires_login INTEGER,
    requires_mfa INTEGER,
    restricted_domain TEXT,
    ip_whitelist TEXT,
    organization_id TEXT,
    ended_at REAL,
    ended_by TEXT
);
CREATE TABLE IF NOT EXISTS submissions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    short_code TEXT NOT NULL UNIQUE,
    request INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    encryption_type TEXT NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS submissions_of ON submissions (request, number);
CREATE TABLE IF NOT EXISTS views (
    space TEXT NOT NULL,
    day TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (space, day)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS counts (
    what TEXT NOT NULL,
    space TEXT NOT NULL,
    live INTEGER NOT NULL DEFAULT 0,
    ended INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (what, space)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS webhooks (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    account TEXT NOT NULL,
    url TEXT NOT NULL,
    secret TEXT NOT NULL,
    previous_secret TEXT,
    created_at REAL NOT NULL,
    rotated_at REAL
);
CREATE TABLE IF NOT EXISTS deliveries (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook TEXT NOT NULL,
    body BLOB NOT NULL,
    created_at REAL NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    due REAL,
    state TEXT NOT NULL DEFAULT 'waiting',
    answered TEXT
);
CREATE INDEX IF NOT EXISTS deliveries_due ON deliveries (webhook, due, number)
WHERE due IS NOT NULL;
CREATE TABLE IF NOT EXISTS accesses (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    share INTEGER NOT NULL,
    accessed REAL NOT NULL,
    accessed_at TEXT NOT NULL,
    accessed_ip TEXT NOT NULL,
    platform TEXT NOT NULL,
    user_agent TEXT,
    failed_passcode INTEGER NOT NULL,
    signed_in INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS accesses_of ON accesses (share, number);
CREATE TABLE IF NOT EXISTS idempotency (
    key_id TEXT NOT NULL,
    name TEXT NOT NULL,
    body_sha256 TEXT NOT NULL,
    answer BLOB NOT NULL,
    created_at REAL NOT NULL,
    PRIMARY KEY (key_id, name)
);
"""

# Indexes and counters of shares and requests: a page costs the same with ten rows and with 20,000.
_SHARES_AND_REQUESTS = """
CREATE INDEX IF NOT EXISTS {what}_live ON {what} (space, number) WHERE ended_at IS NULL;
CREATE INDEX IF NOT EXISTS {what}_ended ON {what} (space, ended_at, number)
WHERE ended_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS {what}_due ON {what} (expires)
WHERE ended_at IS NULL AND expires IS NOT NULL;
CREATE TRIGGER IF NOT EXISTS {what}_made AFTER INSERT ON {what} BEGIN
    INSERT OR IGNORE INTO counts (what, space) VALUES ('{what}', new.space);
    UPDATE counts SET live = live + 1 WHERE what = '{what}' AND space = new.space;
END;
CREATE TRIGGER IF NOT EXISTS {what}_over AFTER UPDATE OF ended_at ON {what}
WHEN old.ended_at IS NULL AND new.ended_at IS NOT NULL BEGIN
    UPDATE counts SET live = live - 1, ended = ended + 1
    WHERE what = '{what}' AND space = new.space;
END;
CREATE TRIGGER IF NOT EXISTS {what}_gone AFTER DELETE ON {what} BEGIN
    UPDATE counts
    SET live = live - (old.ended_at IS NULL), ended = ended - (old.ended_at IS NOT NULL)
    WHERE what = '{what}' AND space = old.space;
END;
"""

VERSION = 4
"""Version of the schema. A file with another one is refused."""

TABLES = (
    *("idempotency", "deliveries", "webhooks", "accesses", "submissions", "requests"),
    *("shares", "views", "counts", "keys", "accounts"),
)
"""All tables, in an order in which they can be emptied."""

SCRIPT = (
    _TABLES
    + "".join(_SHARES_AND_REQUESTS.format(what=what) for what in ("shares", "requests"))
    + f"PRAGMA user_version = {VERSION};"
)
"""Creates whatever is missing."""
