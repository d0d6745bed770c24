"""The statements of a batch's database, one table for both kinds.

Parameters are written `:name`; `fill_in` replaces `{names}`: parts that several statements share,
and what the two kinds spell differently. Readable in the database are ids, states, times, counts
and key ids; all else is in blobs (`sealpipe.batch.database.sealing`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SCHEMA_VERSION: Final = 3

TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS sealpipe_meta (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL)
    """,
    """
    CREATE TABLE IF NOT EXISTS sealpipe_batches (
        id TEXT NOT NULL PRIMARY KEY, key_id TEXT NOT NULL, key_check TEXT NOT NULL,
        created_at {integer} NOT NULL, version {integer} NOT NULL, blob {blob} NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS sealpipe_data_keys (
        batch TEXT NOT NULL, id {blob} NOT NULL, key_id TEXT NOT NULL,
        created_at {integer} NOT NULL, wrapped {blob} NOT NULL, PRIMARY KEY (batch, id)
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS sealpipe_rows (
        batch TEXT NOT NULL, id TEXT NOT NULL, state TEXT NOT NULL, due_at {integer},
        since {integer} NOT NULL, version {integer} NOT NULL, generation {integer} NOT NULL,
        blob {blob} NOT NULL, PRIMARY KEY (batch, id)
    )
    """,
    """
    CREATE INDEX IF NOT EXISTS sealpipe_rows_due_at ON sealpipe_rows (batch, due_at)
    WHERE due_at IS NOT NULL
    """,
    """
    CREATE INDEX IF NOT EXISTS sealpipe_rows_state ON sealpipe_rows (batch, state)
    """,
    """
    CREATE TABLE IF NOT EXISTS sealpipe_effects (
        batch TEXT NOT NULL, row_id TEXT NOT NULL, id TEXT NOT NULL, state TEXT NOT NULL,
        at {integer} NOT NULL, version {integer} NOT NULL, blob {blob} NOT NULL,
        PRIMARY KEY (batch, row_id, id)
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS sealpipe_history (
        batch TEXT NOT NULL, row_id TEXT NOT NULL, number {integer} NOT NULL, at {integer} NOT NULL,
        blob {blob} NOT NULL, PRIMARY KEY (batch, row_id, number)
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS sealpipe_rate (
        id TEXT NOT NULL PRIMARY KEY, next_at {integer} NOT NULL, slowed_until {integer} NOT NULL,
        slowed_at {integer} NOT NULL, last_at {integer} NOT NULL, per_minute {integer},
        spacing {integer}, recent {integer} NOT NULL, seen_at {integer} NOT NULL
    )
    """,
)
"""What makes every table and index that is missing."""

REMOVE_CLAIMS: Final = (
    "DROP INDEX sealpipe_rows_due",
    "ALTER TABLE sealpipe_rows DROP COLUMN holder",
    "ALTER TABLE sealpipe_rows DROP COLUMN held_until",
)
"""What brings the tables of schema 1 and 2 to 3."""

READ_META = "SELECT value FROM sealpipe_meta WHERE name = :name"
ADD_META = (
    "INSERT INTO sealpipe_meta (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING"
)
SET_META = "UPDATE sealpipe_meta SET value = :value WHERE name = :name"

ADD_BATCH = (
    "INSERT INTO sealpipe_batches ({batch_columns}) VALUES (:batch, :key_id, :key_check, "
    ":now, 1, :blob) "
    "ON CONFLICT (id) DO NOTHING RETURNING id"
)
FIND_BATCH = "SELECT {batch_columns} FROM sealpipe_batches WHERE id = :batch"
LIST_BATCHES = "SELECT {batch_columns} FROM sealpipe_batches ORDER BY id"
SAVE_BATCH = (
    "UPDATE sealpipe_batches SET blob = :blob, version = version + 1 WHERE id = :batch AND "
    "version = :version "
    "RETURNING id"
)
RESEAL_BATCH = (
    "UPDATE sealpipe_batches SET key_id = :key_id, key_check = :key_check, blob = :blob WHERE "
    "id = :batch"
)
CHECK_BATCH = (
    "SELECT key_id, key_check, created_at, (SELECT id FROM sealpipe_data_keys WHERE batch = "
    ":batch ORDER BY created_at DESC LIMIT 1) FROM sealpipe_batches WHERE id = :batch"
)

FIND_DATA_KEYS = (
    "SELECT id, key_id, created_at, wrapped FROM sealpipe_data_keys WHERE batch = :batch"
)
ADD_DATA_KEY = (
    "INSERT INTO sealpipe_data_keys (batch, id, key_id, created_at, wrapped) "
    "VALUES (:batch, :id, :key_id, :created_at, :wrapped)"
)
REMOVE_DATA_KEYS = "DELETE FROM sealpipe_data_keys WHERE batch = :batch"

ADD_ROW = (
    "INSERT INTO sealpipe_rows ({row_columns}, blob) "
    "VALUES (:batch, :row, :state, :due_at, :now, 1, 1, :blob) ON CONFLICT (batch, "
    "id) DO NOTHING"
)
READ_ROW = "SELECT {row_columns}, blob FROM sealpipe_rows WHERE batch = :batch AND id = :row"
CHECK_ROW = (
    "SELECT version, generation FROM sealpipe_rows WHERE batch = :batch AND id = :row {lock_row}"
)
LIST_ROWS = "SELECT {row_columns} {listed}"
LIST_CONTENTS = "SELECT {row_columns}, blob {listed}"
COUNT_ROWS = "SELECT state, COUNT(*) FROM sealpipe_rows WHERE batch = :batch GROUP BY state"
NEXT_DUE = "SELECT MIN(due_at) FROM sealpipe_rows WHERE batch = :batch AND due_at IS NOT NULL"
LIST_DUE = (
    "SELECT id FROM sealpipe_rows WHERE batch = :batch AND due_at IS NOT NULL AND due_at <= :now "
    "ORDER BY due_at LIMIT :limit"
)
SAVE_ROW = (
    "UPDATE sealpipe_rows SET state = :state, due_at = :due_at, since = :since, "
    "version = version + 1, generation = :new_generation, blob = :blob WHERE batch = :batch "
    "AND id = :row AND version = :version AND generation = :generation RETURNING id"
)

FIND_EFFECT = (
    "SELECT {effect_columns} FROM sealpipe_effects WHERE batch = :batch AND row_id = :row AND "
    "id = :effect"
)
LIST_EFFECTS = (
    "SELECT {effect_columns} FROM sealpipe_effects WHERE batch = :batch AND row_id = :row "
    "ORDER BY at, id"
)
ADD_EFFECT = (
    "INSERT INTO sealpipe_effects ({effect_columns}) VALUES (:batch, :row, :effect, "
    ":state, :now, 1, :blob) "
    "ON CONFLICT (batch, row_id, id) DO NOTHING RETURNING id"
)
SAVE_EFFECT = (
    "UPDATE sealpipe_effects SET state = :state, at = :at, version = version + 1, blob = :blob "
    "WHERE batch = :batch AND row_id = :row AND id = :effect AND version = :version RETURNING id"
)

REMOVE_EFFECT = (
    "DELETE FROM sealpipe_effects WHERE batch = :batch AND row_id = :row AND id = :effect AND "
    "version = :version RETURNING id"
)
FIND_INTENDED = (
    "SELECT DISTINCT batch FROM sealpipe_effects "
    "WHERE batch IN (SELECT id FROM sealpipe_batches) AND row_id = '' AND state = 'intent'"
)

ADD_EVENT = (
    "INSERT INTO sealpipe_history (batch, row_id, number, at, blob) VALUES (:batch, :row, "
    ":number, :now, :blob)"
)
READ_HISTORY = (
    "SELECT number, at, blob FROM sealpipe_history WHERE batch = :batch AND row_id = :row "
    "ORDER BY number"
)
READ_CHANGES = (
    "SELECT row_id, number, at, blob FROM sealpipe_history WHERE batch = :batch AND at > :since "
    "AND (row_id, number) > (:row, :number) ORDER BY row_id, number LIMIT :limit"
)
COUNT_CHANGES = (
    "SELECT CAST(COALESCE(SUM(version), 0) AS {integer}) FROM sealpipe_rows WHERE batch = :batch"
)

# Page by page, for sealing anew: each table with its key after the batch, and what its blobs are
# bound to.
PAGE_ROWS = (
    "SELECT id, state, generation, version, blob FROM sealpipe_rows WHERE batch = :batch "
    "AND id > :row "
    "ORDER BY id LIMIT :limit"
)
PAGE_EFFECTS = (
    "SELECT row_id, id, state, version, blob FROM sealpipe_effects WHERE batch = :batch "
    "AND (row_id, id) > (:row, :effect) ORDER BY row_id, id LIMIT :limit"
)
PAGE_HISTORY = (
    "SELECT row_id, number, blob FROM sealpipe_history WHERE batch = :batch "
    "AND (row_id, number) > (:row, :number) ORDER BY row_id, number LIMIT :limit"
)
RESEAL_ROW = "UPDATE sealpipe_rows SET blob = :blob WHERE batch = :batch AND id = :row"
RESEAL_EFFECT = (
    "UPDATE sealpipe_effects SET blob = :blob WHERE batch = :batch AND row_id = :row AND id = "
    ":effect"
)
RESEAL_EVENT = (
    "UPDATE sealpipe_history SET blob = :blob WHERE batch = :batch AND row_id = :row AND "
    "number = :number"
)
PURGE: Final = (
    "DELETE FROM sealpipe_history WHERE batch = :batch",
    "DELETE FROM sealpipe_effects WHERE batch = :batch",
    "DELETE FROM sealpipe_rows WHERE batch = :batch",
    REMOVE_DATA_KEYS,
    "DELETE FROM sealpipe_batches WHERE id = :batch",
)

ADD_RATE = (
    "INSERT INTO sealpipe_rate (id, {rate_columns}) VALUES (:id, 0, 0, 0, 0, NULL, NULL, 0, 0) "
    "ON CONFLICT (id) DO NOTHING"
)
PEEK_RATE = "SELECT {rate_columns} FROM sealpipe_rate WHERE id = :id"
READ_RATE = "SELECT {rate_columns} FROM sealpipe_rate WHERE id = :id {lock_row}"
SAVE_RATE = (
    "UPDATE sealpipe_rate SET next_at = :next_at, slowed_until = :slowed_until, "
    "slowed_at = :slowed_at, last_at = :last_at, per_minute = :per_minute, spacing = :spacing, "
    "recent = :recent, seen_at = :seen_at WHERE id = :id"
)

_SHARED: Final = {
    "batch_columns": "id, key_id, key_check, created_at, version, blob",
    "row_columns": "batch, id, state, due_at, since, version, generation",
    "effect_columns": "batch, row_id, id, state, at, version, blob",
    "rate_columns": (
        "next_at, slowed_until, slowed_at, last_at, per_minute, spacing, recent, seen_at"
    ),
    "job_task": "'sealpipe.advance'",
    "job_name": "'sealpipe/' || sealpipe_rows.batch || '/' || sealpipe_rows.id",
    "job_arguments": (
        "jsonb_build_object('batch', CAST(:batch AS text), 'row', CAST(:row AS text))"
    ),
    "listed": "FROM sealpipe_rows WHERE batch = :batch AND id > :after "
    "AND (:all_states = 1 OR state IN ({states})) "
    "AND (CAST(:due_by AS {integer}) IS NULL OR due_at <= :due_by) ORDER BY id LIMIT :limit",
}
"""Parts that several statements share."""


def fill_in(statement: str, dialect: Mapping[str, str]) -> str:
    """Return a statement with its shared parts, in the spelling of one database."""
    shared = {
        name: part.format_map(dialect) if "{" in part else part for name, part in _SHARED.items()
    }
    return statement.format(**shared, **dialect)
