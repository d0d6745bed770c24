"""Metrics of a worker for a scraper on this machine, as OpenMetrics.

Rows by state, what is overdue, calls, the rate.

They hold numbers and names of batches, and nothing of any row.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self

from sealpipe.batch.database.rate import MAX_LIMIT
from sealpipe.batch.database.records import SECOND
from sealpipe.batch.database.store import BatchStore
from sealpipe.batch.steps.states import State
from sealpipe.errors import SealpipeError, SettingError
from sealpipe.parsing import is_loopback

CONTENT_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_TIMEOUT: Final = 10.0
"""Seconds for a scraper to send its request."""


def write_metrics(store: BatchStore, calls: int) -> str:
    """Return the metrics of all batches that the credential opens.

    `calls` were sent by this worker.
    """
    return "".join(
        f"{line}\n" for line in (*_list_batches(store), *_list_calls(store, calls), "# EOF")
    )


def _list_batches(store: BatchStore) -> Iterator[str]:
    batches, now = store.list_batches(), store.now()
    yield "# TYPE sealpipe_batch_rows gauge"
    yield "# HELP sealpipe_batch_rows Rows of a batch in each state."
    for batch in batches:
        counts = store.count_states(batch)
        for state in State:
            yield (
                f'sealpipe_batch_rows{{batch="{batch.name}",state="{state}"}} '
                f"{counts.get(state, 0)}"
            )
    yield "# TYPE sealpipe_batch_overdue_seconds gauge"
    yield "# UNIT sealpipe_batch_overdue_seconds seconds"
    yield (
        "# HELP sealpipe_batch_overdue_seconds How long the row that is due the longest has "
        "waited for a worker."
    )
    for batch in batches:
        due_at = store.find_next_due(batch)
        overdue = 0 if due_at is None else max(0, now - due_at)
        yield f'sealpipe_batch_overdue_seconds{{batch="{batch.name}"}} {overdue / SECOND:.3f}'


def _list_calls(store: BatchStore, calls: int) -> Iterator[str]:
    yield "# TYPE sealpipe_batch_calls counter"
    yield "# HELP sealpipe_batch_calls Calls that this worker has sent to the service."
    yield f"sealpipe_batch_calls_total {calls}"
    rate = store.rate.read()
    yield "# TYPE sealpipe_batch_calls_per_minute gauge"
    yield (
        "# HELP sealpipe_batch_calls_per_minute Calls of all workers together, averaged over "
        "about a minute."
    )
    yield f"sealpipe_batch_calls_per_minute {rate.count_recent(store.now()):.3f}"
    is_limited = rate.spacing is not None or rate.per_minute not in (None, MAX_LIMIT)
    if is_limited:
        yield "# TYPE sealpipe_batch_calls_per_minute_limit gauge"
        yield (
            "# HELP sealpipe_batch_calls_per_minute_limit The plan's rate, for all workers "
            "together."
        )
        yield f"sealpipe_batch_calls_per_minute_limit {rate.calls_per_minute:g}"


class MetricsServer:
    """Serves what `read` returns, on loopback, in a thread of its own.

    A context manager. Raises SettingError.
    """

    def __init__(self, host: str, port: int, read: Callable[[], str]) -> None:
        try:
            self._server = ThreadingHTTPServer((host, port), _make_handler(read))
        except OSError as error:
            raise SettingError(
                f"metrics cannot be served at {host}:{port}: {error.strerror}",
                remedy="choose another port",
            ) from None
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def port(self) -> int:
        """The port, also if the system chose it."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _make_handler(read: Callable[[], str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _TIMEOUT
        server_version = "sealpipe"
        sys_version = ""

        def do_GET(self) -> None:
            host = self.headers.get("Host", "").rpartition(":")[0].strip("[]").lower()
            # A page in a browser that gave this machine a name of its own.
            if not is_loopback(host):
                self._answer(403, "this is for this machine only\n", "text/plain; charset=utf-8")
            elif self.path != "/metrics":
                self._answer(404, "see /metrics\n", "text/plain; charset=utf-8")
            else:
                try:
                    self._answer(200, read(), CONTENT_TYPE)
                except SealpipeError:
                    self._answer(503, "the database does not answer\n", "text/plain; charset=utf-8")

        def _answer(self, status: int, text: str, content_type: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Write no log."""

    return Handler
