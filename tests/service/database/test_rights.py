"""Who serves has no more rights than docs/how-to/your-own-service.md says, and needs no others."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg
import pytest

from sealpipe_service.database import migrating, versions
from sealpipe_service.database.postgresql import STATEMENTS
from support.clusters import Cluster
from support.parts import ROOT

PAGE = ROOT / "docs/how-to/your-own-service.md"
OWNERS = {"start_clock", "set_version", "set_tag"}
"""Statements of those who make the tables."""


@pytest.fixture(scope="module", params=["postgresql"])
def serving(request: pytest.FixtureRequest) -> str:
    """The address of a database for the role that the page makes."""
    cluster: Cluster = request.getfixturevalue("cluster")
    address = cluster.address("empty")
    migrating.make(address)
    page = PAGE.read_text("utf-8")
    (rights,) = re.findall(r"^```sql\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    with psycopg.connect(address) as connection:
        connection.execute(rights.encode())
        connection.execute("CREATE TABLE of_a_later_version (number BIGSERIAL)")
    return address.replace("user=tests", "user=sealpipe_serving")


@pytest.mark.parametrize("name", sorted(STATEMENTS))
def test_who_serves_may_run_each_statement_but_those_that_make_tables(
    serving: str, name: str
) -> None:
    text = re.sub(rb"%\(\w+\)s", b"NULL", STATEMENTS[name]).replace(b"%%", b"%")
    with psycopg.connect(serving) as connection:
        if name in OWNERS:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(b"EXPLAIN " + text)
        else:
            connection.execute(b"EXPLAIN " + text)


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE clock SET offset_seconds = 1",
        "DELETE FROM clock",
        "UPDATE service_version SET version_num = 'x'",
        "TRUNCATE shares",
        "DROP TABLE shares",
        "ALTER TABLE shares ADD COLUMN a TEXT",
        "CREATE TABLE mine (a TEXT)",
        "COPY shares TO PROGRAM 'cat'",
    ],
)
def test_who_serves_may_do_nothing_else(serving: str, text: str) -> None:
    with (
        psycopg.connect(serving) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute(text.encode())


def test_who_serves_may_use_the_tables_that_an_upgrade_adds(serving: str) -> None:
    with psycopg.connect(serving) as connection:
        connection.execute("INSERT INTO of_a_later_version DEFAULT VALUES")


def test_who_serves_may_upgrade_what_is_current(serving: str) -> None:
    """As containers/server/compose.yaml does before each start."""
    assert migrating.upgrade(serving) == (versions.VERSION, versions.VERSION)


def test_postgresqls_log_has_no_values_once_the_page_is_followed(serving: str) -> None:
    def find_after_failure(value: str) -> bool:
        with (
            psycopg.connect(serving) as connection,
            pytest.raises(psycopg.errors.DivisionByZero),
        ):
            connection.execute(f"SELECT 1/0, '{value}'".encode())
        return value.encode() in log.read_bytes()

    owners = serving.replace("user=sealpipe_serving", "user=tests")
    with psycopg.connect(owners, autocommit=True) as owner:
        (folder,) = owner.execute("SHOW data_directory").fetchone() or ("",)
        log = Path(folder).parent / "postgres.log"
        assert find_after_failure("canary-one")
        for setting in re.findall(r"ALTER ROLE \w+ SET .*", PAGE.read_text("utf-8")):
            owner.execute(setting.encode())
    assert not find_after_failure("canary-two")
