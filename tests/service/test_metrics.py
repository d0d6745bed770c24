"""The numbers of a server, as a scraper reads them."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from sealpipe_service import metrics
from sealpipe_service.meters import (
    BUCKETS,
    CELLS,
    FAMILIES,
    Board,
    Meters,
    open_slot,
)
from sealpipe_service.metrics import MEDIA_TYPE, render, serve_metrics
from sealpipe_service.watching import name_status

GET_SHARES = ("/v1/shares", "GET", "200")


def read(text: str) -> Mapping[tuple[str, ...], float]:
    """Return samples by name and labels, as prometheus_client's strict parser reads them."""
    families = list(text_string_to_metric_families(text))
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }


@pytest.fixture
def board() -> Iterator[Board]:
    with closing(Board(2)) as made:
        yield made


def show(board: Board) -> Mapping[tuple[str, ...], float]:
    return read(render(board.total(), "1.2", 1000.5, board.slots, board.starts))


def test_what_processes_count_is_summed(board: Board) -> None:
    one, two = (open_slot(board.fileno(), slot) for slot in (0, 1))
    one.add("requests", *GET_SHARES)
    one.observe("request_duration_seconds", 0.02, "/v1/shares")
    two.add("requests", *GET_SHARES, by=2)
    two.observe("request_duration_seconds", 99.0, "/v1/shares")
    shown = show(board)
    assert shown["sealpipe_requests_total", *GET_SHARES] == 3
    name = "sealpipe_request_duration_seconds"
    buckets = [
        shown[f"{name}_bucket", "/v1/shares", bound] for bound in (*map(str, BUCKETS), "+Inf")
    ]
    assert buckets == [0, 0, *[1] * 9, 2]
    assert shown[f"{name}_count", "/v1/shares"] == 2
    assert shown[f"{name}_sum", "/v1/shares"] == pytest.approx(99.02)


def test_a_process_goes_on_where_the_one_before_it_was_killed(board: Board) -> None:
    killed = open_slot(board.fileno(), 1)
    killed.add("sweeps", "done")
    killed.add("requests_in_progress")
    assert show(board)["sealpipe_requests_in_progress",] == 1
    next_one = open_slot(board.fileno(), 1)
    next_one.add("sweeps", "done")
    shown = show(board)
    assert (shown["sealpipe_sweeps_total", "done"], shown["sealpipe_requests_in_progress",]) == (
        2,
        0,
    )


def test_threads_of_a_process_lose_no_count() -> None:
    meters = Meters()

    def count() -> None:
        for _ in range(2_000):
            meters.add("database_errors")

    threads = [threading.Thread(target=count) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sum(meters.total()) == 8_000


def test_everything_that_can_be_counted_can_be_read() -> None:
    shown = read(render([1] * CELLS, "1.2", 1000.5, 2, 3))
    for family in FAMILIES:
        assert sum(name.startswith(f"sealpipe_{family.name}") for name, *_ in shown)
    assert shown["sealpipe_build_info", "1.2"] == 1
    assert shown["sealpipe_workers",] == 2
    assert shown["sealpipe_worker_starts_total",] == 3
    assert shown["process_start_time_seconds",] == 1000.5


def test_a_server_that_nobody_has_called_shows_what_may_go_wrong() -> None:
    shown = read(render([0] * CELLS, "1", 0.0, 1, 1))
    assert shown["sealpipe_database_errors_total",] == 0
    assert shown["sealpipe_deliveries_total", "mail", "failed"] == 0
    assert not any(name.startswith("sealpipe_requests_total") for name, *_ in shown)


@pytest.mark.parametrize(("status", "name"), [(200, "200"), (299, "other"), (None, "none")])
def test_a_status_is_one_of_a_few(status: int | None, name: str) -> None:
    assert name_status(status) == name


def test_the_listener_shows_the_numbers_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics._Handler, "timeout", 60.0)
    with ExitStack() as opened:
        listening = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
        opened.enter_context(serve_metrics(listening, lambda: "# EOF\n"))
        # Who says nothing holds up neither others nor the end.
        opened.enter_context(socket.create_connection(listening.getsockname()))
        base = f"http://127.0.0.1:{listening.getsockname()[1]}"
        client = opened.enter_context(httpx.Client(base_url=base, trust_env=False))
        with socket.create_connection(listening.getsockname()) as rude:
            rude.sendall(b"nonsense\r\n\r\n")
        answer = client.get("/metrics")
        assert (answer.status_code, answer.text) == (200, "# EOF\n")
        assert answer.headers["content-type"] == MEDIA_TYPE
        assert answer.headers["server"] == "sealpipe"
        assert client.get("/v1/stats").status_code == 404
        assert client.post("/metrics").status_code == 501


def test_a_caller_of_the_listener_who_drips_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics._Handler, "timeout", 0.4)
    with ExitStack() as opened:
        listening = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
        opened.enter_context(serve_metrics(listening, lambda: "# EOF\n"))
        caller = opened.enter_context(socket.create_connection(listening.getsockname()))
        for _ in range(100):
            caller.sendall(b"x")
            if select.select([caller], [], [], 0.05)[0]:
                break
        else:
            pytest.fail("it goes on for ever")
