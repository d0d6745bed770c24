"""Metrics in the text format OpenMetrics 1.0, on a listener of their own."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler

from .meters import BUCKETS, FAMILIES, PLACES, Family
from .webhook_post import cut

MEDIA_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_PREFIX = "sealpipe_"
_ZERO_TOO = 8
"""Up to so many metrics a family shows those that are zero, too."""


def render(cells: Sequence[int], version: str, started: float, workers: int, starts: int) -> str:
    """Return the text. `started` is in seconds since 1970."""
    lines = [line for family in FAMILIES for line in _render_family(family, cells)]
    for name, kind, text, value in (
        ("sealpipe_workers", "gauge", "Processes that serve.", f" {workers}"),
        ("sealpipe_worker_starts", "counter", "Processes that were started.", f"_total {starts}"),
        ("sealpipe_build_info", "gauge", "The program.", f'{{version="{version}"}} 1'),
        ("process_start_time_seconds", "gauge", "Start, since 1970.", f" {started:.3f}"),
    ):
        lines += [f"# TYPE {name} {kind}", f"# HELP {name} {text}", f"{name}{value}"]
    return "\n".join([*lines, "# EOF", ""])


def _render_family(family: Family, cells: Sequence[int]) -> Iterator[str]:
    name = _PREFIX + family.name
    yield f"# TYPE {name} {family.kind}"
    yield f"# HELP {name} {family.help}"
    combinations = list(family.combinations())
    for values in combinations:
        place = PLACES[family.name, values]
        some = cells[place : place + family.width]
        labels = [f'{label}="{value}"' for label, value in zip(family.labels, values, strict=True)]
        if not any(some) and len(combinations) > _ZERO_TOO:
            continue
        if family.kind == "histogram":
            yield from _render_histogram(name, labels, some)
        else:
            yield f"{name}{'_total' if family.kind == 'counter' else ''}{_join(labels)} {some[0]}"


def _render_histogram(name: str, labels: Sequence[str], cells: Sequence[int]) -> Iterator[str]:
    total = 0
    for bound, count in zip((*map(str, BUCKETS), "+Inf"), cells[:-1], strict=True):
        total += count
        bucket = _join([*labels, f'le="{bound}"'])
        yield f"{name}_bucket{bucket} {total}"
    yield f"{name}_count{_join(labels)} {total}"
    yield f"{name}_sum{_join(labels)} {cells[-1] / 1e6:.6f}"


def _join(labels: Sequence[str]) -> str:
    return f"{{{','.join(labels)}}}" if labels else ""


@contextlib.contextmanager
def serve_metrics(listening: socket.socket, text: Callable[[], str]) -> Iterator[None]:
    """Answer GET /metrics at a socket, each caller in a thread."""
    server = _Server(listening, text)
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()


class _Server(socketserver.ThreadingMixIn, socketserver.BaseServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, listening: socket.socket, text: Callable[[], str]) -> None:
        super().__init__(listening.getsockname(), _Handler)
        self._listening = listening
        self.text = text

    def fileno(self) -> int:
        return self._listening.fileno()

    def get_request(self) -> tuple[socket.socket, object]:
        return self._listening.accept()

    def shutdown_request(self, request: socket.socket) -> None:  # type: ignore[override]
        with contextlib.suppress(OSError):
            request.shutdown(socket.SHUT_WR)
        request.close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: whoever asked went away, or was too slow."""


class _Handler(BaseHTTPRequestHandler):
    timeout = 5.0
    server: _Server

    def setup(self) -> None:
        """Give the caller some seconds in all."""
        super().setup()
        self._timer = threading.Timer(self.timeout, cut, [self.request])
        self._timer.daemon = True
        self._timer.start()

    def finish(self) -> None:
        """End."""
        self._timer.cancel()
        super().finish()

    def do_GET(self) -> None:
        """Answer."""
        is_known = self.path.partition("?")[0] == "/metrics"
        body = self.server.text().encode() if is_known else b"see /metrics\n"
        self.send_response(HTTPStatus.OK if is_known else HTTPStatus.NOT_FOUND)
        self.send_header("Content-Type", MEDIA_TYPE if is_known else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def version_string(self) -> str:
        """Return the name of the program, which is nobody's business."""
        return "sealpipe"

    def log_message(self, *_: object) -> None:
        """Log nothing."""
