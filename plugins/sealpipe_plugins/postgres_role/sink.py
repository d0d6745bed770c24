"""`postgres-role:ROLE`: the password of a role in PostgreSQL, confirmed by a login with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import psycopg

from sealpipe.plugin import (
    Context,
    Health,
    Locator,
    Mode,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    Sink,
    SinkField,
    UnsupportedError,
    WriteConflictError,
    WriteResult,
)
from sealpipe_plugins.confirm import Snapshot, has_marker, store_and_confirm
from sealpipe_plugins.postgres_role.errors import CHANGED_MEANWHILE
from sealpipe_plugins.postgres_role.role import (
    Role,
    find_role,
    lock_role,
    make_verifier,
    note_marker,
    set_password,
)
from sealpipe_plugins.postgres_role.server import Proof, Server
from sealpipe_plugins.postgres_role.settings import PostgresSettings
from sealpipe_plugins.sink_values import decode_text, values_by_key

_NAME_LIMIT: Final = 63
"""Maximum bytes of a role's name: PostgreSQL cuts off the rest, and it would be another role."""
_DESCRIPTIONS: Final[Mapping[Mode, str]] = {
    "create": "set the password of the role {role} in {server} if it has none",
    "replace": "set the password of the role {role} in {server}, replacing the one it has",
    "merge": "set the password of the role {role} in {server}, replacing the one it has",
}
_OTHER: Final = {"": b""}
"""A password that is not the wanted one, which is never empty."""


class PostgresRoleSink(Sink):
    """Passwords of existing roles.

    Nobody can read one back: a login shows whether it is the right one.
    """

    def __init__(self, settings: PostgresSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._server = Server(settings, context)

    def describe(self, locator: Locator, mode: Mode) -> str:
        """Describe the write."""
        return _DESCRIPTIONS[mode].format(role=_parse_role(locator), server=self._server.name)

    def put(
        self, locator: Locator, fields: Sequence[SinkField], *, mode: Mode, marker: str
    ) -> WriteResult:
        """Set the password, and log in with it.

        `known` is False if no login from here can prove it.
        """
        name, password = _parse_role(locator), _read_password(locator, fields)
        write = _Write(self._server, locator, name, password, mode, marker)
        outcome = store_and_confirm(
            write.read, write.write, {"": password.encode()}, locator, mode, marker
        )
        if not outcome.is_written:
            return WriteResult(locator, already=True)
        return WriteResult(locator, known=write.confirm())

    def check(self) -> Health:
        """Check the login, and what this user may do."""
        with self._server.transaction() as connection:
            row = connection.execute(_RIGHTS).fetchone()
        user, may = row if row is not None else ("?", False)
        rights = (
            "may set passwords of other roles"
            if may
            else "may set only its own password: it lacks CREATEROLE"
        )
        return Health(ok=True, detail=f"{user} {rights}")

    def close(self) -> None:
        """Close the connection."""
        self._server.close()


_RIGHTS: Final = (
    "SELECT rolname::text, rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user"
)


class _Write:
    """One password on its way to a role."""

    def __init__(
        self, server: Server, locator: Locator, name: str, password: str, mode: Mode, marker: str
    ) -> None:
        self._server, self._locator, self._mode, self._marker = server, locator, mode, marker
        self._name, self._password = name, password
        self._verifier = ""

    def read(self) -> Snapshot:
        """Return the state of the role. Raises PluginError."""
        with self._server.transaction() as connection:
            role = find_role(connection, self._name)
        if role is None:
            raise SecretNotFoundError(
                f"{self._server.name} has no role {self._name}",
                remedy="check the name; CREATE ROLE makes one",
            )
        if has_marker(role.markers, self._marker):
            return Snapshot(_OTHER, markers=role.markers, raw=role)
        if role.is_visible and role.verifier is None:
            return Snapshot(None, raw=role)
        if self._server.log_in(self._name, self._password) is Proof.ACCEPTED:
            return Snapshot({"": self._password.encode()}, raw=role)
        if self._mode == "create" and not role.is_visible:
            raise WriteConflictError(
                f"the role {self._name} may have a password, which this user cannot see",
                remedy="if it may be replaced: ?mode=replace in the target",
            )
        return Snapshot(_OTHER, raw=role)

    def write(
        self,
        snapshot: Snapshot,
        after: Mapping[str, bytes],  # noqa: ARG002
        tries: int,  # noqa: ARG002
    ) -> str | None:
        """Set the password, unless the role has changed since. Raises PluginError."""
        seen: Role = snapshot.raw
        _require_login(seen, self._name)
        with self._server.transaction(writes=True) as connection:
            lock_role(connection, seen)
            if find_role(connection, self._name) != seen:
                return None
            self._verifier = make_verifier(connection, self._name, self._password)
            try:
                set_password(connection, self._name, self._verifier)
                note_marker(connection, self._name, seen, self._marker)
            except psycopg.errors.InternalError_ as error:
                if error.sqlstate != CHANGED_MEANWHILE:
                    raise
                return None
        return ""

    def confirm(self) -> bool:
        """Return whether a login, or the stored verifier, proves the new password.

        Raises PluginError if not so.
        """
        proof = self._server.log_in(self._name, self._password)
        if proof is Proof.ACCEPTED:
            return True
        with self._server.transaction() as connection:
            role = find_role(connection, self._name)
        if role is not None and role.is_visible and proof is Proof.NONE:
            if role.verifier == self._verifier:
                return True
            proof = Proof.REFUSED
        if proof is Proof.REFUSED:
            raise PluginError(
                f"{self._locator}: the password was set, but a login with it is refused",
                remedy="check what else sets it",
            )
        return False


def _parse_role(locator: Locator) -> str:
    name = locator.body
    if not name or len(name.encode("utf-8", "surrogatepass")) > _NAME_LIMIT:
        raise ReferenceValueError(
            f"{locator} is not the name of a role, which has 1 to {_NAME_LIMIT} bytes",
            remedy="write postgres-role:ROLE",
        )
    return name


def _read_password(locator: Locator, fields: Sequence[SinkField]) -> str:
    if len(fields) != 1:
        raise ReferenceValueError(
            f"{locator} holds one value", remedy="name one role for each value"
        )
    (value,) = values_by_key(fields, locator).values()
    password = decode_text(value, locator)
    if not password or "\0" in password:
        raise UnsupportedError(
            (
                f"{locator}: a password of PostgreSQL cannot "
                f"{'be empty' if not password else 'have a NUL character'}"
            ),
            remedy="ask for another password",
        )
    return password


def _require_login(role: Role, name: str) -> None:
    if not role.can_log_in:
        raise UnsupportedError(
            f"the role {name} cannot log in, so a password is of no use to it",
            remedy="give it the right first: ALTER ROLE ... LOGIN",
        )
    if role.is_expired:
        raise UnsupportedError(
            f"the passwords of the role {name} have expired (VALID UNTIL)",
            remedy="extend it first: ALTER ROLE ... VALID UNTIL 'infinity'",
        )
