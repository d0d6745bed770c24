"""A real PostgreSQL that asks for passwords (SCRAM), and logs every statement."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from typing import Any

import psycopg
import pytest
import trustme
from psycopg import sql

from support.parts import Postgres, run_postgres
from support.ports import free_port

ADMIN_PASSWORD = "canary-7f3a91c2d4e85b60"
HBA = """
local all tests trust
local all trusted trust
local all spelled password
local all outsider reject
local all all scram-sha-256
host all all all scram-sha-256
"""
# Nobody listens there: it is where a client connects.
THERE, ELSEWHERE = "0.0.0.0", "127.1"  # noqa: S104
"""Both are this machine, but not by their spelling, so TLS is verified."""
LOGGING = (
    "logging_collector=on",
    "log_filename=server.log",
    "log_statement=all",
    "log_min_messages=debug1",
)


class Roles:
    """The server, as its administrator has it.

    `admin` is a superuser with a password, `deputy` has CREATEROLE only.
    """

    def __init__(self, server: Postgres, port: int) -> None:
        self.server, self.port = server, port
        self.address = f"{server.address}&port={port}"
        self._numbers = itertools.count()
        (server.folder / "data/pg_hba.conf").write_text(HBA)
        self._connection = psycopg.connect(self.address, autocommit=True)
        self.run("SELECT pg_reload_conf()")
        self.run("SET log_statement = 'none'")
        self.run("CREATE DATABASE closed")
        self.run("REVOKE CONNECT ON DATABASE closed FROM PUBLIC")
        for name, rights in (("admin", "LOGIN SUPERUSER"), ("deputy", "LOGIN CREATEROLE")):
            self.create(name, rights, password=ADMIN_PASSWORD)

    def run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement as a superuser; `{}` are names."""
        names = (sql.Identifier(str(each)) for each in values)
        text = sql.SQL(statement).format(*names)  # type: ignore[arg-type]
        cursor = self._connection.execute(text)
        return cursor.fetchall() if cursor.description else []

    def create(self, name: str = "", rights: str = "LOGIN", password: str | None = None) -> str:
        """A new role."""
        name = name or f"app-{next(self._numbers)}"
        self.run(f"CREATE ROLE {{}} {rights}", name)
        if password is not None:
            self.set(name, password)
        return name

    def set(self, name: str, password: str) -> None:
        """Set a password by hand: the server computes what it stores.

        What is run here is not logged.
        """
        text = sql.SQL("ALTER ROLE {} PASSWORD {}").format(
            sql.Identifier(name), sql.Literal(password)
        )
        self._connection.execute(text)

    def accepts(self, name: str, password: str, dbname: str = "postgres") -> bool:
        """Whether a client gets in."""
        try:
            psycopg.connect(
                host=str(self.server.folder),
                port=self.port,
                user=name,
                password=password,
                dbname=dbname,
            ).close()
        except psycopg.OperationalError:
            return False
        return True

    def comment(self, name: str) -> str | None:
        read = "SELECT shobj_description(oid, 'pg_authid') FROM pg_roles"
        [(text,)] = self.run(f"{read} WHERE rolname = '{name}'")
        return text  # type: ignore[no-any-return]

    def verifier(self, name: str) -> str | None:
        [(text,)] = self.run(
            f"SELECT rolpassword FROM pg_authid WHERE rolname = '{name}'"  # noqa: S608
        )
        return text  # type: ignore[no-any-return]

    def log(self) -> str:
        """All that the server has logged."""
        return (self.server.folder / "data/log/server.log").read_text()

    def environ(self, user: str = "admin", **more: str) -> Mapping[str, str]:
        """The variables of PostgreSQL's own clients."""
        found = {
            "PGHOST": str(self.server.folder),
            "PGPORT": str(self.port),
            "PGUSER": user,
            "PGPASSWORD": ADMIN_PASSWORD,
            "PGDATABASE": "postgres",
        }
        return {**found, **more}

    def offer_tls(self, authority: trustme.CA) -> None:
        """From now on take TLS, too, with a certificate for `THERE`."""
        certificate, owner = authority.issue_cert(THERE), self.server.folder.stat()
        for name, pem in (
            ("key", certificate.private_key_pem),
            ("cert", certificate.cert_chain_pems[0]),
        ):
            file = self.server.folder / f"{name}.pem"
            pem.write_to_path(file)
            file.chmod(0o600)
            os.chown(file, owner.st_uid, owner.st_gid)
            self.run(f"ALTER SYSTEM SET ssl_{name}_file = '{file}'")
        self.run("ALTER SYSTEM SET ssl = 'on'")
        self.run("SELECT pg_reload_conf()")

    def close(self) -> None:
        self._connection.close()


@pytest.fixture(scope="session")
def roles() -> Iterator[Roles]:
    port = free_port()
    with run_postgres(*LOGGING, "listen_addresses=127.0.0.1", port=port) as server:
        roles = Roles(server, port)
        yield roles
        roles.close()
