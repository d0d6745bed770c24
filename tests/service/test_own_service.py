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
from service.sdk_cases import (
    client,
    test_a_link_to_nothing_is_not_found,
    test_a_request_made_again_from_the_same_seed_is_the_same_one,
    test_a_request_that_time_ends_is_deleted_by_one_delete,
    test_it_asks_for_a_secret_and_opens_what_was_sent,
    test_it_creates_and_the_recipient_reads,
    test_it_gets_a_retry_after,
    test_it_gets_and_expires,
    test_it_leaves_out_a_type_and_the_prompt_is_text,
    test_it_lists_gets_and_deletes_a_request_twice,
    test_it_meets_a_missing_scope_a_refused_wrap_and_a_revoked_key,
    test_it_meets_the_conflict_of_an_idempotency_key,
    test_it_meets_the_end_of_its_allowance,
    test_it_reads_the_figures,
    test_it_sends_every_optional_member,
    test_it_walks_more_than_a_hundred_shares,
    test_what_is_not_sealed_is_counted_and_kept_back,
)
from support.own_service import OwnRunning, make_own_service
from support.parts import Postgres, run_postgres

__all__ = ["client"]
__all__ += [
    "test_a_link_to_nothing_is_not_found",
    "test_a_request_made_again_from_the_same_seed_is_the_same_one",
    "test_a_request_that_time_ends_is_deleted_by_one_delete",
    "test_a_revoked_credential_and_a_smaller_plan",
    "test_a_secret_comes_from_its_submitter",
    "test_a_secret_goes_to_its_recipient",
    "test_asyncio_too",
    "test_credentials_by_scope_custody_and_account",
    "test_it_asks_for_a_secret_and_opens_what_was_sent",
    "test_it_creates_and_the_recipient_reads",
    "test_it_gets_a_retry_after",
    "test_it_gets_and_expires",
    "test_it_leaves_out_a_type_and_the_prompt_is_text",
    "test_it_lists_gets_and_deletes_a_request_twice",
    "test_it_meets_a_missing_scope_a_refused_wrap_and_a_revoked_key",
    "test_it_meets_the_conflict_of_an_idempotency_key",
    "test_it_meets_the_end_of_its_allowance",
    "test_it_reads_the_figures",
    "test_it_sends_every_optional_member",
    "test_it_walks_more_than_a_hundred_shares",
    "test_time_passes_in_seconds_or_as_a_timedelta",
    "test_what_is_not_sealed_is_counted_and_kept_back",
]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with run_postgres() as server:
        yield server


@pytest.fixture(scope="module", params=["one process", "four processes", "four on PostgreSQL"])
def how(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def of_the_sdk(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, how: str
) -> Iterator[OwnRunning]:
    address = make_database(request, "sdk") if "PostgreSQL" in how else None
    yield from running(tmp_path_factory.mktemp("crs"), how, address, "--tag", "crs")


@pytest.fixture(scope="module")
def of_the_plugin(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, how: str
) -> Iterator[OwnRunning]:
    address = make_database(request, "plugin") if "PostgreSQL" in how else None
    yield from running(tmp_path_factory.mktemp("svc"), how, address)


def make_database(request: pytest.FixtureRequest, name: str) -> str:
    """An empty database of its own, of nobody else."""
    server: Postgres = request.getfixturevalue("postgres")
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return server.address.replace("/postgres?", f"/{name}?")


def running(place: Path, how: str, address: str | None, *words: str) -> Iterator[OwnRunning]:
    own = make_own_service(place / "service", address, *words)
    with own.running("--workers", "4" if "four" in how else "1"):
        service = OwnRunning(own)
        yield service
        service.close()


@pytest.fixture
def service(of_the_sdk: OwnRunning) -> OwnRunning:
    of_the_sdk.reset()
    of_the_sdk.set_account(requests_per_minute=100_000)
    return of_the_sdk


def test_no_answer_is_out_of_shape(service: OwnRunning) -> None:
    document = openapi.document(extended=True)
    counts = Run(service, document=document).all(300)  # type: ignore[arg-type]
    assert counts.total() >= 300
    assert {status for _, _, status in counts} >= {200, 201, 400, 401, 404, 429}


@pytest.fixture
def extended() -> None:
    """A service of one's own always is."""


@pytest.fixture
def sealpipe_rehearsal(of_the_plugin: OwnRunning, tmp_path: Path) -> Iterator[Rehearsal]:
    with Rehearsal(of_the_plugin, lambda: tmp_path) as found:  # type: ignore[arg-type]
        yield found
