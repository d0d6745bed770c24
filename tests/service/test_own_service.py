"""What other programs do with a rehearsal they do, unchanged, with a service of one's own: the
vendor's SDK, schemathesis, and tests that were written with the pytest plugin.

Not here: what only a rehearsal can tell (which requests it saw) or do (faults).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from sealpipe_rehearsal.pytest_plugin import Rehearsal
from sealpipe_service import openapi
from service.plugin_cases import (
    test_a_revoked_credential_and_a_smaller_plan,
    test_a_secret_comes_from_its_submitter,
    test_a_secret_goes_to_its_recipient,
    test_asyncio_too,
    test_credentials_by_scope_custody_and_account,
    test_time_passes_in_seconds_or_as_a_timedelta,
)
from service.schemathesis_cases import Run
from service.sdk_cases import *  # noqa: F403  # its cases are tests of this file
from support.own_service import OwnRunning, make_own_service
from support.parts import Postgres, run_postgres

__all__ = [
    "test_a_revoked_credential_and_a_smaller_plan",
    "test_a_secret_comes_from_its_submitter",
    "test_a_secret_goes_to_its_recipient",
    "test_asyncio_too",
    "test_credentials_by_scope_custody_and_account",
    "test_time_passes_in_seconds_or_as_a_timedelta",
]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with run_postgres() as server:
        yield server


@pytest.fixture(scope="module", params=["one process", "four on PostgreSQL"])
def how(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def one_service(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, how: str
) -> Iterator[OwnRunning]:
    """With the tag that the SDK wants."""
    address = make_database(request) if "PostgreSQL" in how else None
    own = make_own_service(tmp_path_factory.mktemp("own") / "service", address, "--tag", "crs")
    with own.running("--workers", "4" if "four" in how else "1"):
        service = OwnRunning(own)
        yield service
        service.close()


def make_database(request: pytest.FixtureRequest) -> str:
    """An empty database of its own, of nobody else."""
    server: Postgres = request.getfixturevalue("postgres")
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute(b"CREATE DATABASE own")
    return server.address.replace("/postgres?", "/own?")


@pytest.fixture
def service(one_service: OwnRunning) -> OwnRunning:
    one_service.reset()
    one_service.set_account(requests_per_minute=100_000)
    return one_service


def test_no_answer_is_out_of_shape(service: OwnRunning) -> None:
    document = openapi.document(extended=True)
    counts = Run(service, document=document).all(300)  # type: ignore[arg-type]
    assert counts.total() >= 300
    assert {status for _, _, status in counts} >= {200, 201, 400, 401, 404, 429}


@pytest.fixture
def extended() -> None:
    """A service of one's own always is."""


@pytest.fixture
def sealpipe_rehearsal(one_service: OwnRunning, tmp_path: Path) -> Iterator[Rehearsal]:
    with Rehearsal(one_service, lambda: tmp_path) as found:  # type: ignore[arg-type]
        yield found
