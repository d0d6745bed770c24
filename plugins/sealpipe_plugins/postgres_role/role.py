"""What PostgreSQL holds of a role, and the statements that change it.

A role has no place for a marker but its comment: sealpipe appends a line of its own to it, and
keeps what is there.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import sql

from sealpipe_plugins.confirm import add_marker

_Connection = psycopg.Connection[tuple[Any, ...]]

_MARKERS: Final = re.compile(r"(?:^|\n)\[sealpipe: ([A-Za-z0-9._ -]+)\]\Z")
_MARKER_LIMIT: Final = 400
"""Characters of markers in a comment: people read it."""

_FIND: Final = """
SELECT r.oid::pg_catalog.int8, r.rolcanlogin,
    COALESCE(r.rolvaliduntil <= pg_catalog.now(), false),
    COALESCE(pg_catalog.shobj_description(r.oid, 'pg_authid'), ''),
    pg_catalog.has_column_privilege('pg_catalog.pg_authid', 'rolpassword', 'SELECT')
        AND pg_catalog.has_column_privilege('pg_catalog.pg_authid', 'oid', 'SELECT')
FROM pg_catalog.pg_roles r WHERE r.rolname::pg_catalog.text = %s::pg_catalog.text
"""
_READ_VERIFIER: Final = (
    "SELECT rolpassword FROM pg_catalog.pg_authid WHERE oid = %s::pg_catalog.oid"
)
_LOCK: Final = "SELECT pg_catalog.pg_advisory_xact_lock(%s::pg_catalog.int8)"
_LOCKS: Final = 0x7365616C << 32
"""Where the numbers of our locks begin: one for each role."""


class Role(NamedTuple):
    """A role.

    `verifier` is the password as PostgreSQL stores it; None: it has none, or `is_visible` is False.
    """

    number: int
    can_log_in: bool
    is_expired: bool
    comment: str
    is_visible: bool
    verifier: str | None = None

    @property
    def markers(self) -> str:
        """The markers in the comment, separated by spaces."""
        match = _MARKERS.search(self.comment)
        return match[1] if match else ""


def find_role(connection: _Connection, name: str) -> Role | None:
    """Return a role by its exact name. In a transaction of `Server`. Raises psycopg.Error."""
    row = connection.execute(_FIND, (name,)).fetchone()
    if row is None:
        return None
    role = Role(*row)
    if not role.is_visible:
        return role
    found = connection.execute(_READ_VERIFIER, (role.number,)).fetchone()
    return role._replace(verifier=found[0] if found else None)


def lock_role(connection: _Connection, role: Role) -> None:
    """Wait until no other sealpipe changes the role, until the end of the transaction.

    Raises psycopg.Error.
    """
    connection.execute(_LOCK, (_LOCKS + role.number,))


def make_verifier(connection: _Connection, name: str, password: str) -> str:
    """Return what PostgreSQL stores of a password.

    Computed here, so that no statement has the password itself.
    """
    return connection.pgconn.encrypt_password(
        password.encode(), name.encode(), b"scram-sha-256"
    ).decode("ascii")


def set_password(connection: _Connection, name: str, verifier: str) -> None:
    """Set a role's password. Raises psycopg.Error."""
    statement = sql.SQL("ALTER ROLE {} PASSWORD {}").format(
        sql.Identifier(name), sql.Literal(verifier)
    )
    connection.execute(statement)


def note_marker(connection: _Connection, name: str, role: Role, marker: str) -> None:
    """Append a marker to the role's comment, if the user may comment on it.

    Raises psycopg.Error.
    """
    comment = append_marker(role.comment, marker)
    connection.execute("SAVEPOINT comment")
    try:
        connection.execute(
            sql.SQL("COMMENT ON ROLE {} IS {}").format(sql.Identifier(name), sql.Literal(comment))
        )
    except psycopg.errors.InsufficientPrivilege:  # as a role that may change its own password only
        connection.execute("ROLLBACK TO SAVEPOINT comment")


def append_marker(comment: str, marker: str) -> str:
    """Return a comment with a marker in its last line; the rest of it stays as it is."""
    match = _MARKERS.search(comment)
    text = comment[: match.start()] if match else comment
    markers = add_marker(match[1] if match else "", marker, _MARKER_LIMIT)
    return f"{text}\n[sealpipe: {markers}]" if text else f"[sealpipe: {markers}]"
