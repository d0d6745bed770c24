"""Two ways to the same service for the state machine: its handlers called in process, or a real
socket.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from sealpipe_rehearsal import control
from sealpipe_rehearsal.application import is_control
from sealpipe_rehearsal.clock import MovableClock
from sealpipe_rehearsal.database import RehearsalDatabase
from sealpipe_rehearsal.log import Log
from sealpipe_rehearsal.rehearsed import RehearsedService
from sealpipe_rehearsal.server import start
from sealpipe_service import app
from sealpipe_service.context import HttpRequest
from sealpipe_service.database.decisions import Store
from sealpipe_service.responses import Response

START = datetime(2026, 11, 21, tzinfo=UTC)

Seen = tuple[int, Mapping[str, str], Any]  # status, headers, the JSON of the body


class Door:
    """A service on a state file of its own, with a clock that only the test moves."""

    service: RehearsedService

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="sealpipe-machine-")
        self._seconds = 0
        self._numbers = itertools.count()
        self.open()

    def now(self) -> datetime:
        return START + timedelta(seconds=self._seconds)

    def advance(self, seconds: int) -> None:
        self._seconds += seconds

    def token_bytes(self, number: int) -> bytes:
        """Each short code is drawn twice, so that every second draw is taken."""
        return (next(self._numbers) // 2).to_bytes(number)

    @property
    def state(self) -> Path:
        return Path(self._folder.name) / "state"

    def restart(self) -> None:
        """End the service and start it again on its state file."""
        self.shut()
        self.open()

    def close(self) -> None:
        self.shut()
        self._folder.cleanup()

    def ask(self, method: str, path: str, sent: Any = None, **headers: str) -> Seen:
        """A call: `sent` is a body, in bytes or to be JSON; `path` is below the service's
        address.
        """
        raise NotImplementedError

    def open(self) -> None:
        raise NotImplementedError

    def shut(self) -> None:
        raise NotImplementedError


def as_bytes(sent: Any) -> bytes:
    return sent if isinstance(sent, bytes) else b"" if sent is None else json.dumps(sent).encode()


def ask(service: RehearsedService, http_request: HttpRequest) -> Response:
    """Call the handler in this process, found as the applications find it."""
    if is_control(http_request):
        return control.handle(service, http_request)
    return app.find_handler(http_request)(service, http_request)


class InProcess(Door):
    """The handlers without a server."""

    def open(self) -> None:
        database = RehearsalDatabase(self.state, self.now)
        # No power fails here, and an endurance run starts again thousands of times.
        for connection in database.connections():
            connection.execute("PRAGMA synchronous=OFF")
        self.service = RehearsedService(
            Store(database),
            MovableClock(database),
            Log(),
            "svc",
            self.token_bytes,
            database=database,
            extended=True,
        )

    def shut(self) -> None:
        self.service.store.close()

    def ask(self, method: str, path: str, sent: Any = None, **headers: str) -> Seen:
        path, _, query = path.partition("?")
        names = tuple((name.replace("_", "-").lower(), value) for name, value in headers.items())
        http_request = HttpRequest(
            method, tuple(path.split("/")[1:]), dict(parse_qsl(query)), names, as_bytes(sent)
        )
        answer = ask(self.service, http_request)
        return answer.status, dict(answer.headers), json.loads(answer.body)


class OverASocket(Door):
    """The service as it runs, and a connection for each call, which sends headers as they stand."""

    def open(self) -> None:
        self._running = start(
            state=self.state, clock=self.now, token_bytes=self.token_bytes, extended=True
        )
        self.service = self._running.service

    def shut(self) -> None:
        self._running.stop()

    def ask(self, method: str, path: str, sent: Any = None, **headers: str) -> Seen:
        address = self._running.address
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        with contextlib.closing(http.client.HTTPConnection(*address, timeout=30)) as connection:
            connection.request(method, path, as_bytes(sent), names)
            answer = connection.getresponse()
            assert answer.headers["content-type"] == "application/json"
            return answer.status, answer.headers, json.loads(answer.read())
