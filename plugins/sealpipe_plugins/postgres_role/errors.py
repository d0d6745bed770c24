"""Psycopg's errors as ours.

By SQLSTATE, and for a connection that failed, which has none, by libpq's words.

The words of a server are in its language: if none is known, an error only says less. Nothing of
them is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import psycopg

from sealpipe.plugin import (
    AccessDeniedError,
    BackendAuthError,
    NotConfiguredError,
    PluginError,
    UnavailableError,
)

_Meaning = tuple[type[PluginError], str, str]

_NETWORK: Final = "check the address and the network"
_LATER: Final = "run it again later"

_BY_WORDS: Final[tuple[tuple[re.Pattern[str], _Meaning], ...]] = tuple(
    (re.compile(words), meaning)
    for words, meaning in {
        "certificate verify failed": (
            NotConfiguredError, "has a certificate from an authority that is not trusted here",
            "name the CA's file in SEALPIPE_CA_FILE",
        ),
        "does not match host name": (
            NotConfiguredError, "has a certificate for another host", "check the host's name",
        ),
        "does not support SSL": (NotConfiguredError, "does not offer TLS",
            "set ssl=on on the server"),
        "could not translate host name|failed to resolve|Name or service not known": (
            UnavailableError, "cannot be reached: the host does not exist",
            "check host, and the network's DNS",
        ),
        "Connection refused|No such file or directory": (
            UnavailableError, "cannot be reached: nobody listens there",
            "check that it runs, and host and port",
        ),
        "definition of service": (
            NotConfiguredError, "cannot be reached: PGSERVICE names an unknown service",
            "unset PGSERVICE",
        ),
        "no pg_hba.conf entry": (
            AccessDeniedError, "does not let this user in from here",
            "add a line to its pg_hba.conf",
        ),
        r'database ".*" does not exist': (
            NotConfiguredError, "has no database of that name", "check dbname (PGDATABASE)",
        ),
        "permission denied for database|is not permitted to log in": (
            AccessDeniedError, "does not let this user into the database",
            "grant it LOGIN, and CONNECT on it",
        ),
        "no password supplied": (
            NotConfiguredError, "asks for a password, and none is set", "set password (PGPASSWORD)",
        ),
        "authentication method requirement": (
            NotConfiguredError,
            ("asks for a login that is not allowed here, such as the password itself in "
                "clear"),
            "set sslmode to verify-full, so that it proves who it is",
        ),
        "starting up|shutting down|recovery mode|too many|remaining connection slots": (
            UnavailableError, "takes no connection now", _LATER,
        ),
    }.items()
)  # fmt: skip

_BY_STATE: Final[Mapping[str, _Meaning]] = {
    "42501": (
        AccessDeniedError, "does not let this user set the password of that role",
        ("give it CREATEROLE, and ADMIN OPTION on the role (PostgreSQL 16 or later), or "
            "superuser for a superuser"),
    ),
    "25006": (NotConfiguredError, "is a standby, or read-only", "set host to the primary server"),
    "57014": (UnavailableError, "took too long", _LATER),
    "55P03": (UnavailableError, "has the role locked", _LATER),
}  # fmt: skip
_PASSING: Final = ("08", "40", "53", "57", "58")
"""Classes of errors that pass: connection, deadlock, resources, a server that stops, its disk."""
CHANGED_MEANWHILE: Final = "XX000"
"""What PostgreSQL says if two change one role at the same moment."""


def connect_error(error: psycopg.Error, server: str) -> PluginError:
    """Return the error for a connection that failed."""
    if isinstance(error, psycopg.errors.ConnectionTimeout):
        return UnavailableError(f"{server}: connection timed out", remedy=_NETWORK)
    text = str(error)
    for words, (kind, reason, remedy) in _BY_WORDS:
        if words.search(text):
            return kind(f"{server} {reason}", remedy=remedy)
    if error.pgconn is not None and error.pgconn.used_password:
        return BackendAuthError(
            f"{server} refused the login",
            remedy="check user and password (PGUSER, PGPASSWORD), and that it has not expired",
        )
    return UnavailableError(
        f"{server} did not let us connect", remedy=f"{_NETWORK}, and the server's log"
    )


def statement_error(error: psycopg.Error, server: str) -> PluginError:
    """Return the error for a statement that failed."""
    state = error.sqlstate
    if state is None:
        return UnavailableError(
            f"{server} ended the connection, or did not respond in time", remedy=_NETWORK
        )
    if state in _BY_STATE:
        kind, reason, remedy = _BY_STATE[state]
        return kind(f"{server} {reason}", remedy=remedy)
    if state[:2] in _PASSING or state == CHANGED_MEANWHILE:
        return UnavailableError(f"{server} cannot do it now (SQLSTATE {state})", remedy=_LATER)
    return PluginError(
        f"{server} refused the statement (SQLSTATE {state})",
        remedy="look it up in the server's log",
    )
