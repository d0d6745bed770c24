"""What a server logs of a request: one line, of what it has a name for."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from starlette.types import ASGIApp

from sealpipe_rehearsal.running_service import RunningService
from sealpipe_service import app, gateway, routes
from sealpipe_service.database.access import UnavailableError
from sealpipe_service.front import Front
from sealpipe_service.logs import JsonLines
from sealpipe_service.meters import Meters
from sealpipe_service.watching import Watch
from service.callers import Api

CANARY = "canary-canary-canary"
PROXY, STRANGER = "10.0.0.1", "192.0.2.9"


class Lines(logging.Handler):
    """Keeps lines as they would stand on stderr."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonLines())
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def lines() -> Iterator[list[str]]:
    kept, root = Lines(), logging.getLogger()
    before = (logging.getLogger("sealpipe_service").level, logging.getLogger("sealpipe_service"))
    root.addHandler(kept)
    before[1].setLevel(logging.INFO)
    yield kept.lines
    root.removeHandler(kept)
    before[1].setLevel(before[0])


def ask(
    application: ASGIApp,
    method: str,
    path: str,
    *,
    headers: Sequence[tuple[bytes, bytes]] = (),
    body: bytes = b"",
    peer: str = STRANGER,
    host: bytes = b"127.0.0.1",
) -> tuple[int, dict[bytes, bytes], bytes]:
    """Ask an application; return status, headers and body."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "client": (peer, 1),
        "headers": [(b"host", host), *headers],
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": CANARY.encode(),
    }
    asyncio.run(application(scope, receive, send))
    content = b"".join(each.get("body", b"") for each in sent[1:])
    return sent[0]["status"], dict(sent[0]["headers"]), content


def test_a_line_has_the_route_the_key_and_the_outcome_and_no_code(
    service: RunningService, api: Api, lines: list[str]
) -> None:
    code = api.created()
    watched = Watch(app.build(service.service), [], Meters())
    credential = api.http.headers["authorization"]
    status, headers, content = ask(
        watched, "GET", f"/v1/shares/{code}", headers=[(b"authorization", credential.encode())]
    )
    told = json.loads(lines.pop())
    assert told.pop("milliseconds") >= 0
    assert re.fullmatch(r"[0-9]{4}-.*Z", told.pop("time"))
    assert told.pop("process")
    assert told == {
        "level": "info",
        "message": "request",
        "request_id": headers[b"x-request-id"].decode(),
        "method": "GET",
        "route": "/v1/shares/{shortCode}",
        "status": status,
        "bytes": len(content),
        "key": credential.partition("_live_")[2].partition(".")[0],
    }
    assert status == 200


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"path": "/v1/shares"}, "no_authorization"),
        ({"path": "/links/shares/none"}, "not-found"),
        ({"path": "/links/requests/none"}, "not-found"),
        ({"path": "/s/none", "host": b"other.example"}, "other-host"),
        ({"path": "/s/none", "headers": [(b"origin", b"https://other.example")]}, "other-page"),
        ({"path": "/s/none", "peer": STRANGER}, "no-tls"),
        ({"path": "/v1/shares", "headers": [(b"content-length", b"9" * 12)]}, "no_authorization"),
    ],
)
def test_a_line_has_the_reason_of_a_refusal(
    service: RunningService, lines: list[str], how: dict[str, Any], reason: str
) -> None:
    front = Front(app.build(service.service), [PROXY], has_tls=False)
    ask(Watch(front, [PROXY], Meters()), "GET", **{"peer": PROXY, **how})
    assert json.loads(lines.pop())["reason"] == reason


def test_a_line_tells_whose_call_it_is_that_comes_with_a_revoked_key(
    service: RunningService, api: Api, lines: list[str]
) -> None:
    credential = api.http.headers["authorization"]
    key_id = credential.partition("_live_")[2].partition(".")[0]
    service.service.store.revoke(key_id)
    watched = Watch(app.build(service.service), [], Meters())
    for sent in (credential, f"{credential[:-1]}{'B' if credential[-1] == 'A' else 'A'}"):
        ask(watched, "GET", "/v1/shares", headers=[(b"authorization", sent.encode())])
    right, wrong = map(json.loads, lines)
    assert (right["reason"], right["key"]) == ("not_usable", key_id)
    assert wrong["reason"] == "not_usable"
    assert "key" not in wrong


def test_a_line_has_the_reason_also_where_the_database_does_not_answer(
    service: RunningService, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise UnavailableError("nobody listens there")

    monkeypatch.setattr(app.share_link, "show_state", fail)
    ask(Watch(app.build(service.service), [], Meters()), "GET", "/links/shares/none")
    assert json.loads(lines.pop())["reason"] == "unavailable"


@pytest.mark.parametrize(
    ("peer", "given", "is_taken"),
    [
        (PROXY, b"4b1c/9:a", True),
        (STRANGER, b"4b1c/9:a", False),
        (PROXY, b"a" * 65, False),
        (PROXY, b'a","b":"', False),
        (PROXY, b"", False),
    ],
)
def test_an_id_is_taken_from_a_proxy_if_it_is_sane(
    service: RunningService, lines: list[str], peer: str, given: bytes, *, is_taken: bool
) -> None:
    watched = Watch(app.build(service.service), ["10.0.0.0/8"], Meters())
    _, headers, _ = ask(watched, "GET", "/healthz", headers=[(b"x-request-id", given)], peer=peer)
    assert (headers[b"x-request-id"] == given) is is_taken
    assert json.loads(lines.pop())["request_id"] == headers[b"x-request-id"].decode()


def test_an_address_is_told_only_if_it_is_asked_for(
    service: RunningService, lines: list[str]
) -> None:
    forwarded = [(b"x-forwarded-for", b"198.51.100.7")]
    for tells in (False, True):
        watched = Watch(app.build(service.service), ["10.0.0.0/8"], Meters(), tells_addresses=tells)
        ask(watched, "GET", "/healthz", headers=forwarded, peer=PROXY)
        assert json.loads(lines.pop()).get("address") == ("198.51.100.7" if tells else None)


def test_what_a_caller_makes_up_is_in_no_line(service: RunningService, lines: list[str]) -> None:
    watched = Watch(app.build(service.service), [], Meters())
    header = [(b"authorization", f"Bearer {CANARY}".encode()), (b"user-agent", CANARY.encode())]
    for method, path in (
        ("GET", f"/{CANARY}"),
        (CANARY, f"/v1/{CANARY}"),
        ("GET", f"/page/{CANARY}"),
        ("GET", f"/s/{CANARY}%23{CANARY}"),
        ("POST", f"/links/shares/{CANARY}/open"),
    ):
        ask(watched, method, path, headers=header, body=CANARY.encode())
    assert len(lines) == 5
    assert CANARY not in "".join(lines)
    assert {json.loads(line)["route"] for line in lines} == {
        "other",
        "/s/{shortCode}",
        "/links/shares/{shortCode}/open",
    }


def test_a_handler_that_fails_is_logged_without_path_and_value(
    service: RunningService, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError(CANARY)

    monkeypatch.setattr(app.share_link, "show_state", fail)
    watched = Watch(app.build(service.service), [], Meters())
    status, _, _ = ask(watched, "GET", f"/links/shares/{CANARY}")
    failure, request = map(json.loads, lines)
    assert (status, request["status"]) == (500, 500)
    assert failure["message"] == "GET /links/shares/{shortCode} failed"
    assert failure["error"] == "ValueError"
    assert CANARY not in "".join(lines)


def test_every_route_has_a_name() -> None:
    for route in (*gateway.ROUTES, *gateway.MCP_ROUTES, *gateway.EXTENDED_ROUTES):
        assert routes.name_route(("v1", *route.path)) == f"/v1/{'/'.join(route.path)}"
    assert routes.name_route(("page", "share.js")) == "/page/{file}"
    assert routes.name_route(("page", "none.js")) == routes.OTHER
    assert len(set(routes.ROUTES)) == len(routes.ROUTES)


# -- what others say -------------------------------------------------------------------------------

FAILS_IN_TASK = """
import asyncio, gc

async def fail():
    raise ValueError(CANARY)

async def forget():
    task = asyncio.ensure_future(fail())
    await asyncio.sleep(0)
    await asyncio.sleep(0)

asyncio.run(forget())
gc.collect()  # the task is in a circle with its traceback
"""

FAILS_IN_THREAD = """
import threading

def fail():
    raise ValueError(CANARY)

thread = threading.Thread(target=fail)
thread.start()
thread.join()
"""


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (FAILS_IN_TASK, "asyncio: Task exception was never retrieved"),
        (FAILS_IN_THREAD, "a thread ended"),
        ("import warnings; warnings.warn(CANARY)", "UserWarning at "),
        ("import logging; logging.getLogger('psycopg').warning('no %s', CANARY)", "psycopg: no %s"),
        ("raise ValueError(CANARY)", "an error that ends the process"),
    ],
    ids=["task", "thread", "warning", "library", "end"],
)
def test_whatever_says_something_says_it_as_json_without_values(program: str, told: str) -> None:
    """In a process of its own, for pytest logs and handles errors, too."""
    start = f"from sealpipe_service.logs import start_logging; start_logging(); CANARY = {CANARY!r}"
    ran = subprocess.run(
        [sys.executable, "-c", f"{start}\n{program}"], capture_output=True, text=True, check=False
    )
    (line,) = ran.stderr.splitlines()
    assert json.loads(line)["message"].startswith(told)
    assert CANARY not in line
