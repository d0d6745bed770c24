"""A batch meets the real limit of a service, with many threads and with two machines: nothing is
sent twice, nothing is lost, and the rate of all together is what was promised.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from cli.batch.pigeons import LOFTS, Loft
from cli.batch.share_batch import FILE
from sealpipe.api.operation import Credential
from sealpipe.batch.database.opening import open_database, open_store, prepare_tables
from sealpipe.batch.database.store import BatchStore
from sealpipe.batch.engine.run import RunResult
from sealpipe.batch.engine.session import run_batch
from sealpipe.batch.engine.sync import sync
from sealpipe.batch.file.reading import read_definition
from sealpipe.client_base import connect
from sealpipe.registry import Registry
from sealpipe.registry.catalog import BUILT_IN
from sealpipe.secret import Secret
from sealpipe.session import Session
from sealpipe_rehearsal.log import LoggedRequest
from sealpipe_rehearsal.running_service import RunningService
from sealpipe_rehearsal.server import start
from support.parts import Postgres, run_postgres

ROWS = 24
PER_MINUTE = 120
HELD = 8
"""What the service takes at once, of its burst."""


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with run_postgres() as server:
        yield server


class Machines:
    """Some machines that run one file, at one service."""

    def __init__(self, folder: Path, service: RunningService, address: Secret | None) -> None:
        self._folder, self._service, self._address = folder, service, address
        self._api_key = service.create_key().reveal()
        self._loft_name = secrets.token_hex(8)
        self.loft = LOFTS[self._loft_name] = Loft()
        self._path = folder / "batch.toml"
        # One database serves several tests.
        self._path.write_text(FILE.replace('"keys"', f'"keys-{self._loft_name}"'))
        lines = (f"v{number:02},v{number:02}.example" for number in range(ROWS))
        (folder / "rows.csv").write_text("\n".join(["name,to", *lines]) + "\n")

    def run(self, number: int, threads: int) -> list[RunResult]:
        """Run the file on so many machines at once, each with so many threads."""
        if self._address is not None:
            with closing(open_database(self._folder, self._address)) as database:
                prepare_tables(database)
        with closing(self._open()) as store:
            sync(store, read_definition(self._path))
        spent = self._service.service.store
        key_id = Credential.parse(self._api_key).key_id
        now = self._service.service.clock.now().timestamp()
        for _ in range(2 * PER_MINUTE - HELD):
            assert spent.take(key_id, PER_MINUTE, now) == 0
        with ThreadPoolExecutor(number) as pool:
            return list(pool.map(lambda _: self._run(threads), range(number)))

    def _open(self) -> BatchStore:
        database = open_database(self._folder / "state", self._address)
        credential = Credential.parse(self._api_key)
        return open_store(database, credential, self._service.base_url)

    def _run(self, threads: int) -> RunResult:
        registry = Registry(
            environ={"LOFT": self._loft_name}, built_in=(*BUILT_IN, "cli.batch.pigeons")
        )
        credential, service = Credential.parse(self._api_key), self._service
        session = connect(
            Session(credential, service.base_url, service.link_base_url, lambda: registry)
        )
        with closing(self._open()) as store, closing(session.transport):
            return run_batch(session, store, read_definition(self._path), threads=threads)


def creates(service: RunningService) -> list[LoggedRequest]:
    return [seen for seen in service.seen() if seen.method == "POST"]


@pytest.mark.parametrize("is_announced", [False, True], ids=["learned", "announced"])
@pytest.mark.parametrize(("kind", "number", "threads"), [("sqlite", 1, 8), ("postgres", 2, 4)])
def test_nothing_is_sent_twice_or_lost_and_all_keep_the_rate(
    tmp_path: Path,
    request: pytest.FixtureRequest,
    kind: str,
    number: int,
    threads: int,
    *,
    is_announced: bool,
) -> None:
    address = None
    if kind == "postgres":
        address = Secret(request.getfixturevalue("postgres").address)
    with start(extended=is_announced) as service:
        service.set_account(requests_per_minute=PER_MINUTE)
        machines = Machines(tmp_path, service, address)
        results = machines.run(number, threads)
        sent = creates(service)
        calls = len(service.seen())
        shares = service.service.database.rows("SELECT short_code FROM shares", {})
    assert {result.stopped for result in results} == {None}
    assert max(result.counts.get("done", 0) for result in results) == ROWS
    assert Counter(to for to, _ in machines.loft.messages) == Counter(
        f"v{row:02}.example" for row in range(ROWS)
    )
    assert len(shares) == ROWS == len({message.short_code for _, message in machines.loft.messages})
    assert len({dict(each.headers)["idempotency-key"] for each in sent}) == ROWS
    assert sum(result.calls for result in results) == calls
    refused = len(sent) - ROWS
    if is_announced:
        assert refused == 0, "it knows the limit, and spaces calls from the first on"
        gaps = [(after.at - before.at).total_seconds() for before, after in pairwise(sent)]
        seconds = (sent[-1].at - sent[0].at).total_seconds()
        assert ROWS - 1 <= seconds * PER_MINUTE / 60 <= 1.3 * ROWS, gaps
    else:
        assert 0 < refused <= number * threads, "at most those that were on their way, once"
