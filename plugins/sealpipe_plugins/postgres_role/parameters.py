"""The parameters of libpq for a connection.

What the settings name, and nothing that it would find by itself.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any, Final

import certifi
import psycopg
from psycopg import conninfo, pq

from sealpipe.plugin import Context, NotConfiguredError, Secret, is_loopback
from sealpipe_plugins.postgres_role.settings import PostgresSettings

Parameters = Mapping[str, Any]
"""They may hold a password."""

_IN_URL: Final = frozenset(
    {
        "host",
        "port",
        "dbname",
        "user",
        "password",
        "passfile",
        "sslmode",
        "sslrootcert",
        "sslcert",
        "sslkey",
    }
    | {"connect_timeout", "target_session_attrs", "channel_binding"}
)
_ALWAYS: Final[Parameters] = {
    "application_name": "sealpipe",
    "client_encoding": "UTF8",
    "hostaddr": "",  # could lead elsewhere than to the host whose certificate is checked
    "options": "",
    "gssencmode": "disable",
    "keepalives_idle": 30,
    "tcp_user_timeout": 30_000,  # milliseconds
}
# These, only a service that PGSERVICE names can set.
_NEUTRAL: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("dbname", "user", "password", "sslcert", "sslkey", "sslrootcert", "sslcrl", "sslcrldir"),
        "",
    ),
    **dict.fromkeys(("sslkeylogfile", "replication"), ""),
    "requirepeer": "",
    "port": "5432",
    "passfile": "/dev/null/none",  # an empty one would be ~/.pgpass
    "sslmode": "prefer",
    "sslcertmode": "disable",
    "sslnegotiation": "postgres",
    "ssl_min_protocol_version": "TLSv1.2",
    "ssl_max_protocol_version": "",
    "min_protocol_version": "3.0",
    "max_protocol_version": "3.0",
    "channel_binding": "prefer",
    "require_auth": "none,password,md5,scram-sha-256",
    "target_session_attrs": "any",
    "load_balance_hosts": "disable",
}
"""What libpq would else read from the environment or the home of this user."""
_NOT_IN_CLEAR: Final[Mapping[str, str]] = {"require_auth": "none,md5,scram-sha-256"}
"""At a port of this machine that any of its users may have opened: who asks for the password itself
does not get it.
"""
_SCRAM_ONLY: Final[Mapping[str, str]] = {"require_auth": "scram-sha-256"}


def make_parameters(settings: PostgresSettings, context: Context) -> dict[str, Any]:
    """Return the parameters of the connection that sets passwords. Raises NotConfiguredError.

    Over a network, the server's certificate and host name must be verified.
    """
    given = _list_given(settings)
    if settings.url is not None:
        given |= _parse_url(settings.url, context.store)
    if not given.get("host"):
        raise NotConfiguredError(
            f"the store {context.store} lacks the setting host", remedy="set host or url (PGHOST)"
        )
    if not context.named and context.environ.get("PGSERVICE"):
        raise NotConfiguredError(
            f"PGSERVICE is set, which {context.store} does not support",
            remedy="unset it, and set PGHOST and the others",
        )
    hosts = str(given["host"]).split(",")
    is_local = all(host.startswith(("/", "@")) or is_loopback(host) for host in hosts)
    if not is_local and given.setdefault("sslmode", "verify-full") != "verify-full":
        raise NotConfiguredError(
            f"the connection of {context.store} must be verified TLS",
            remedy="set sslmode to verify-full, or unset it (PGSSLMODE)",
        )
    is_verified = given.get("sslmode") == "verify-full" or all(
        host.startswith(("/", "@")) for host in hosts
    )
    if not is_verified and (context.named or not context.environ.get("PGREQUIREAUTH")):
        given |= _keep_known(_NOT_IN_CLEAR)
    if str(given.get("sslmode", "")).startswith("verify") and "sslrootcert" not in given:
        bundle = (
            context.network.ca_bundle() or ssl.get_default_verify_paths().cafile or certifi.where()
        )
        given["sslrootcert"] = str(bundle)
    return {**(_keep_known(_NEUTRAL) if context.named else {}), **_ALWAYS, **given}


def make_login(
    parameters: Parameters, role: str, password: str, connection: psycopg.Connection[Any]
) -> Parameters:
    """Return the parameters of a role's login by password, at the server that we reached.

    A server that asks for the password itself does not get it, if libpq is new enough (16) to
    refuse that.
    """
    reached = connection.pgconn
    names = ("sslmode", "sslrootcert", "connect_timeout")
    return {
        **_keep_known({**_NEUTRAL, **_SCRAM_ONLY}),
        **_ALWAYS,
        **{name: parameters[name] for name in names if name in parameters},
        "host": reached.host.decode(),
        "port": reached.port.decode(),
        "hostaddr": reached.hostaddr.decode(),
        "dbname": reached.db.decode(),
        "user": role,
        "password": password,
    }


def _list_given(settings: PostgresSettings) -> dict[str, Any]:
    password = None if settings.password is None else settings.password.reveal()
    names = (
        "host",
        "port",
        "dbname",
        "user",
        "passfile",
        "sslmode",
        "sslrootcert",
        "connect_timeout",
    )
    values = {**{name: getattr(settings, name) for name in names}, "password": password}
    return {name: str(value) for name, value in values.items() if value}


def _parse_url(url: Secret, store: str) -> dict[str, Any]:
    try:
        parts = conninfo.conninfo_to_dict(url.reveal())
    except (psycopg.Error, UnicodeError):  # its text quotes the address
        parts = {}
    if not parts:
        raise NotConfiguredError(
            f"the setting url of {store} is not an address of PostgreSQL",
            remedy="write it as postgresql://USER:PASSWORD@HOST/DATABASE",
        )
    if refused := sorted(parts.keys() - _IN_URL):
        raise NotConfiguredError(
            f"the setting url of {store} must not have {refused[0]}", remedy="leave it out"
        )
    return parts


def _keep_known(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return those parameters that this libpq knows."""
    known = {each.keyword.decode() for each in pq.Conninfo.get_defaults()}
    return {name: value for name, value in parameters.items() if name in known}
