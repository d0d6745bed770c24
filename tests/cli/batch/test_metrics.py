"""A worker's metrics: what a scraper on this machine reads, and what anybody else gets."""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator
from math import e

import pytest

from cli.batch.request_batch import FILE, ROWS
from cli.batch.world import BatchWorld
from sealpipe import UsageError
from sealpipe.batch.database.rate import MAX_LIMIT
from sealpipe.batch.engine.metrics import CONTENT_TYPE, MetricsServer, write_metrics
from sealpipe.errors import SettingError, StateError
from sealpipe.parsing import parse_loopback_address


@pytest.fixture
def server(world: BatchWorld) -> Iterator[MetricsServer]:
    world.run(world.write(FILE, ROWS))
    with MetricsServer("127.0.0.1", 0, lambda: write_metrics(world.store, 7)) as made:
        yield made


def get(
    server: MetricsServer, path: str = "/metrics", host: str | None = None
) -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("GET", path, headers={"Host": host or f"127.0.0.1:{server.port}"})
    response = connection.getresponse()
    return response.status, response.headers["Content-Type"], response.read().decode()


def test_a_scraper_reads_rows_calls_and_what_is_overdue(
    server: MetricsServer, world: BatchWorld
) -> None:
    status, kind, text = get(server)
    assert (status, kind) == (200, CONTENT_TYPE)
    name = world.store.list_batches()[0].name
    assert f'sealpipe_batch_rows{{batch="{name}",state="waiting"}} {len(ROWS)}\n' in text
    assert f'sealpipe_batch_overdue_seconds{{batch="{name}"}} 0.000\n' in text
    assert "sealpipe_batch_calls_total 7\n" in text
    assert text.endswith("# EOF\n")
    world.wait(3600)
    (overdue,) = re.findall(r"overdue_seconds\{.*\} (\d+)", get(server)[2])
    assert int(overdue) > 3000


def test_the_rate_of_all_workers_stands_beside_its_limit(
    server: MetricsServer, world: BatchWorld
) -> None:
    def read_rate() -> list[str]:
        return re.findall(
            r"^sealpipe_batch_calls_per_minute(?:_limit)? (\S+)$", get(server)[2], re.MULTILINE
        )

    world.store.rate.set_limit(None)
    (before,) = map(float, read_rate())
    assert len(ROWS) - 1 < before <= len(world.all_requests()) + 10
    world.store.rate.set_limit(100)
    assert read_rate()[1:] == ["95"]
    world.store.rate.set_limit(MAX_LIMIT)
    assert read_rate()[1:] == [], "an account without a rate"
    world.store.rate.slow_down(world.store.now(), None)
    assert len(read_rate()) == 2, "until a 429 has taught one"
    world.wait(60)
    assert float(read_rate()[0]) == pytest.approx(before / e, rel=0.1)


def test_metrics_name_no_row(server: MetricsServer) -> None:
    text = get(server)[2]
    assert [value for row in ROWS for value in row.values() if value in text] == []


@pytest.mark.parametrize(
    ("path", "host", "status"),
    [("/", None, 404), ("/metrics", "evil.example:80", 403), ("/metrics", "localhost:1", 200)],
)
def test_only_this_machine_and_only_metrics(
    server: MetricsServer, path: str, host: str | None, status: int
) -> None:
    assert get(server, path, host)[0] == status


def test_a_database_that_does_not_answer_is_503() -> None:
    def read() -> str:
        raise StateError("canary")

    with MetricsServer("127.0.0.1", 0, read) as server:
        status, _, text = get(server)
    assert (status, "canary" in text) == (503, False)


def test_a_port_that_is_taken_is_an_error(server: MetricsServer) -> None:
    with pytest.raises(SettingError, match="cannot be served at 127"):
        MetricsServer("127.0.0.1", server.port, str)


@pytest.mark.parametrize(
    "text", ["0.0.0.0:9464", "example.org:9464", "9464", "127.0.0.1", "127.0.0.1:0", "::1:9464", ""]
)
def test_only_an_address_of_this_machine_is_taken(text: str) -> None:
    with pytest.raises(UsageError):
        parse_loopback_address(text)
    assert parse_loopback_address("127.0.0.1:9464") == ("127.0.0.1", 9464)


def test_a_port_alone_lacks_its_host() -> None:
    with pytest.raises(UsageError, match="the address is not a host and a port"):
        parse_loopback_address("9464")
