"""A PostgreSQL that is killed in the middle of a write: it is either all there, marker included, or
nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from plugins.postgres_role.conftest import Sinks
from sealpipe.errors import UnavailableError, UnknownOutcomeError
from support.parts import Postgres, run_postgres
from support.ports import free_port
from support.roles import Roles


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Postgres, int]]:
    port = free_port()
    with run_postgres(port=port) as server:
        Roles(server, port).close()
        yield server, port


@pytest.mark.parametrize("moment", ["ALTER", "COMMENT", "COMMIT", "committed"])
def test_a_write_is_whole_or_not_there_and_the_next_run_knows(
    moment: str,
    server: tuple[Postgres, int],
    sinks: Sinks,
    password: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    postgres, port = server
    environ = {
        "PGHOST": str(postgres.folder),
        "PGPORT": str(port),
        "PGUSER": "tests",
        "PGDATABASE": "postgres",
    }
    address, role = f"{postgres.address}&port={port}", f"at-{moment}"
    with psycopg.connect(address, autocommit=True) as admin:
        admin.execute(f'CREATE ROLE "{role}" LOGIN')
    execute, commits = psycopg.Connection.execute, []

    def killing(connection: Any, statement: Any, *more: Any, **options: Any) -> Any:
        text = (
            str(statement)
            if isinstance(statement, str | bytes)
            else statement.as_string(connection)
        )
        commits.extend([text] * (text == "COMMIT"))
        if text.startswith(moment) and (moment != "COMMIT" or len(commits) == 2):
            postgres.kill()
        found = execute(connection, statement, *more, **options)
        if moment == "committed" and len(commits) == 2:
            postgres.kill()
            raise psycopg.OperationalError("the answer is lost")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(psycopg.Connection, "execute", killing)
        with pytest.raises(
            UnknownOutcomeError if moment in ("COMMIT", "committed") else UnavailableError
        ):
            sinks.put(environ, role, password)
    postgres.start(port=port)
    assert sinks.put(environ, role, password).already is (moment == "committed")
    with psycopg.connect(address) as admin:
        [(comment,)] = admin.execute(
            "SELECT shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = %s", (role,)
        ).fetchall()
    assert comment == "[sealpipe: m1]"
    psycopg.connect(
        host=str(postgres.folder), port=port, user=role, password=password, dbname="postgres"
    ).close()
