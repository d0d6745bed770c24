"""Faults on purpose: every one of the table as it is seen on the wire, and the plan that says when
they happen.
"""

from __future__ import annotations

import gzip
import json
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from sealpipe_rehearsal import control_client
from sealpipe_rehearsal.faults import FAULTS
from sealpipe_rehearsal.running_service import RunningService
from sealpipe_rehearsal.server import FaultPlanError, start
from service.callers import Api, body
from service.callers import refusal as said
from support.parts import ROOT
from support.ports import free_port
from support.stopwatch import stopwatch

RESET, EOF, OPEN = "reset", "end of file", "still open"
QUIET = 0.3
"""Seconds after which nothing more is expected."""


@dataclass(frozen=True)
class Got:
    """What a client received: the bytes, and how it ended."""

    data: bytes
    end: str

    @property
    def status(self) -> int:
        return int(self.data.split(b" ", 2)[1])

    @property
    def head(self) -> bytes:
        return self.data.partition(b"\r\n\r\n")[0].lower()

    @property
    def body(self) -> bytes:
        return self.data.partition(b"\r\n\r\n")[2]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@contextmanager
def connected(service: RunningService) -> Iterator[socket.socket]:
    with socket.create_connection(service.address, timeout=30) as sock:
        yield sock


def send(
    sock: socket.socket, api: Api, method: str = "POST", path: str = "/shares", key: str = "k" * 20
) -> None:
    content = json.dumps(body()).encode() if method == "POST" else b""
    head = (
        f"{method} /v1{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {api.bearer}\r\n"
        f"Idempotency-Key: {key}\r\n"
    )
    framing = b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(content)
    sock.sendall(head.encode() + framing + content)


def receive(sock: socket.socket, enough: int = 100_000_000, patience: float = 20) -> Got:
    """All of one answer: to its end, to the connection's, until nothing comes, or until there is
    enough.
    """
    data = b""
    while len(data) < enough and not whole(data):
        sock.settimeout(QUIET if data else patience)
        try:
            piece = sock.recv(65536)
        except ConnectionResetError:
            return Got(data, RESET)
        except TimeoutError:
            return Got(data, OPEN)
        if not piece:
            return Got(data, EOF)
        data += piece
    return Got(data, OPEN)


def whole(data: bytes) -> bool:
    head, blank, content = data.partition(b"\r\n\r\n")
    length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
    return bool(blank) and length is not None and len(content) >= int(length[1])


def posted(
    service: RunningService, api: Api, enough: int = 100_000_000, patience: float = 20
) -> Got:
    with connected(service) as sock:
        send(sock, api)
        return receive(sock, enough, patience)


# -- what is seen on the wire ---------------------------------------------------------------------

Wants = Callable[[Got], bool]


def answers(status: int, *heads: bytes) -> Wants:
    """An answer in good order, on a connection that goes on."""
    return lambda got: (
        got.status == status
        and got.end == OPEN
        and whole(got.data)
        and all(h in got.head for h in heads)
    )


def nothing(got: Got) -> bool:
    return got == Got(b"", OPEN)


def refusal(status: int, code: int) -> Wants:
    return lambda got: answers(status, b"application/json")(got) and got.json["error_code"] == code


@dataclass(frozen=True)
class Seen:
    """A fault with its parameters, what a client receives, and how many shares there are
    afterwards.
    """

    fault: str
    wants: Wants
    shares: int = 0
    parameters: tuple[tuple[str, object], ...] = ()
    enough: int = 100_000_000

    def __str__(self) -> str:
        return " ".join([self.fault, *(name for name, _ in self.parameters)])


def seen(
    fault: str, wants: Wants, shares: int = 0, enough: int = 100_000_000, **parameters: object
) -> Seen:
    return Seen(fault, wants, shares, tuple(parameters.items()), enough)


SEEN = (
    seen("pass", answers(201), 1),
    seen("reset", lambda got: got == Got(b"", RESET)),
    seen("reset", lambda got: got == Got(b"", RESET), 1, after_commit=True),
    seen("close", lambda got: got == Got(b"", EOF)),
    seen("close", lambda got: got == Got(b"", EOF), 1, after_commit=True),
    seen("hang", nothing),
    seen("hang", nothing, 1, after_commit=True),
    seen("delay", answers(201), 1, seconds=0.01),
    seen("delay", nothing, 0, seconds=100),
    seen("delay", nothing, 1, seconds=100, after_commit=True),
    seen("garbage", lambda got: got == Got(b"SSH-2.0-OpenSSH_9.2\r\n", EOF)),
    seen("garbage", lambda got: got == Got("käse".encode(), EOF), text="käse"),
    seen("garbage", lambda got: got == Got(b"\x15\x03\x01", EOF), base64="FQMB"),
    seen(
        "interim",
        lambda got: got.data.startswith(b"HTTP/1.1 102 ") and b"\r\n\r\nHTTP/1.1 201 " in got.data,
        1,
    ),
    seen(
        "drip-head",
        lambda got: b"\r\n\r\n" not in got.data and got.data.endswith(b"ddd"),
        0,
        40,
        every=0.001,
    ),
    seen(
        "drip-body",
        lambda got: got.body.endswith(b"ddd") and not whole(got.data),
        0,
        150,
        every=0.001,
    ),
    seen("endless", lambda got: b"chunked" in got.head and got.end == OPEN, 0, 5_000_000),
    seen(
        "endless",
        lambda got: b"chunked" in got.head and got.end == OPEN,
        1,
        5_000_000,
        after_commit=True,
    ),
    seen(
        "half-head",
        lambda got: got.end == EOF and got.status == 201 and b"\r\n\r\n" not in got.data,
        1,
    ),
    seen(
        "half-body",
        lambda got: got.end == EOF and not whole(got.data) and b'{"short_code"' in got.body,
        1,
    ),
    seen(
        "bad-json",
        lambda got: answers(201)(got) and got.body.startswith(b'{"short') and b"}" not in got.body,
        1,
    ),
    seen("empty-body", lambda got: answers(201)(got) and got.body == b"", 1),
    seen("body", lambda got: answers(201)(got) and got.body == b"[]", 1, text="[]"),
    seen("body", lambda got: answers(201)(got) and got.body == b"\xff", 1, base64="/w=="),
    seen(
        "oversize",
        lambda got: (
            answers(201)(got) and len(got.body) == 2 * 1024 * 1024 and "custody" in got.json
        ),
        1,
    ),
    seen(
        "members",
        lambda got: got.json["short_code"] == 12 and "custody" in got.json,
        1,
        change={"short_code": 12},
    ),
    seen(
        "members",
        lambda got: "short_code" not in got.json and "custody" in got.json,
        1,
        drop=["short_code"],
    ),
    seen(
        "gzip",
        lambda got: (
            b"content-encoding: gzip" in got.head and b"custody" in gzip.decompress(got.body)
        ),
        1,
    ),
    seen(
        "answer",
        lambda got: answers(418)(got) and got.body == b"tea" and b"type" not in got.head,
        status=418,
        text="tea",
    ),
    seen("answer", answers(503, b"x-why: because"), status=503, headers={"X-Why": "because"}),
    seen(
        "answer",
        lambda got: got.status == 204 and b"length" not in got.head,
        1,
        status=204,
        after_commit=True,
    ),
    seen(
        "html",
        lambda got: answers(502, b"text/html")(got) and got.body.startswith(b"<!DOCTYPE html>"),
    ),
    seen("html", answers(504, b"text/html"), 1, status=504, after_commit=True),
    seen("fail", answers(201), 1),  # a create has no such answer
    seen("error", refusal(500, 42), status=500, code=42),
    seen("error", refusal(409, 105), 1, status=409, code=105, after_commit=True),
    seen(
        "error",
        lambda got: got.json["additional_data"] == {"a": "b"},
        status=400,
        code=19,
        data={"a": "b"},
    ),
    seen("rate-limit", lambda got: refusal(429, 107)(got) and b"retry-after" not in got.head),
    seen(
        "rate-limit",
        lambda got: refusal(429, 107)(got) and b"retry-after: 7\r" in got.head + b"\r",
        retry_after=7,
    ),
    seen("rate-limit", lambda got: b"retry-after: 1e400" in got.head, retry_after="1e400"),
    seen(
        "rate-limit",
        lambda got: b"retry-after: " + b"9" * 5_000 in got.head,
        retry_after="9" * 5_000,
    ),
    seen("unauthorized", lambda got: answers(401)(got) and got.json == {"message": "Unauthorized"}),
    seen("redirect", answers(307, b"location: http://localhost:1/v1")),
    seen(
        "redirect", answers(302, b"location: /v2"), 1, status=302, location="/v2", after_commit=True
    ),
    seen("refuse", lambda got: got == Got(b"", RESET), seconds=0),
    seen("refuse", lambda got: got == Got(b"", RESET), 1, seconds=0, after_commit=True),
)


def test_every_fault_of_the_table_is_looked_at() -> None:
    assert {row.fault for row in SEEN} == set(FAULTS)


@pytest.mark.parametrize("row", SEEN, ids=str)
def test_a_fault_is_what_its_client_sees_and_the_next_request_is_answered(
    row: Seen, service: RunningService, api: Api
) -> None:
    service.set_faults({"fault": row.fault, **dict(row.parameters)})
    got = posted(service, api, row.enough, QUIET if row.wants is nothing else 20)
    assert row.wants(got), got
    while row.fault == "refuse" and not listens(service):
        time.sleep(0.01)
    assert len(api.codes()) == row.shares
    # The same bytes and key again: carried out once, however often it was sent.
    assert posted(service, api).status == (200 if row.shares else 201)
    assert len(api.codes()) == 1


def listens(service: RunningService) -> bool:
    try:
        with connected(service):
            return True
    except ConnectionRefusedError:
        return False


def test_an_answer_of_a_fault_leaves_its_connection_to_the_next_request(
    service: RunningService, api: Api
) -> None:
    faults = [{"fault": "html"}, {"fault": "rate-limit"}, {"fault": "members", "drop": ["custody"]}]
    service.set_faults(*faults)
    with connected(service) as sock:
        statuses = []
        for _ in range(4):
            send(sock, api)
            statuses.append(receive(sock).status)
    assert statuses == [502, 429, 201, 200]


@pytest.mark.parametrize("name", ["hang", "drip-body", "endless", "delay"])
def test_a_client_that_goes_away_ends_its_fault(
    service: RunningService, api: Api, name: str
) -> None:
    parameters = {"seconds": 1_000} if name == "delay" else {}
    service.set_faults({"fault": name, **parameters})
    with connected(service) as sock:
        send(sock, api)
        while not service.faults()[0].applied:
            time.sleep(0.005)
    tasks = service._server.server_state.tasks
    until = time.monotonic() + 10
    while tasks and time.monotonic() < until:
        time.sleep(0.005)
    assert not tasks


@pytest.mark.parametrize("name", ["hang", "endless", "refuse"])
def test_a_service_ends_at_once_whatever_its_faults_are_doing(
    name: str, caller: Callable[..., Api]
) -> None:
    fault = {"fault": name, **({"seconds": 1_000} if name == "refuse" else {})}
    with start(free_port(), faults=[fault]) as service:
        api = caller(service)
        with connected(service) as sock:
            send(sock, api)
            while not service.faults()[0].applied:
                time.sleep(0.005)
            service._server.config.timeout_graceful_shutdown = (
                60  # what a fault that goes on would hold it for
            )
            with stopwatch() as seconds:
                service.stop()
                assert seconds() < 9, "and not ten, after which nobody waits for it any longer"
    with start(service.address.port) as again:
        assert listens(again)


# -- nobody listens -------------------------------------------------------------------------------


def test_while_connections_are_refused_the_port_stays_ours_until_it_is_mended(
    service: RunningService, caller: Callable[..., Api]
) -> None:
    before = service.address.port
    kept = caller(service)
    kept.codes()
    service.refuse()
    service.refuse()
    assert not listens(service)
    with start() as another:
        assert another.address.port != before
    assert kept.codes() == [], "a connection that was there stays"
    service.mend()
    service.mend()
    assert listens(service)
    assert service.address.port == before


def test_refusing_ends_by_itself(service: RunningService, api: Api) -> None:
    service.set_faults({"fault": "refuse", "seconds": 0.2})
    began = time.monotonic()
    assert posted(service, api).end == RESET
    assert not listens(service)
    while not listens(service):
        time.sleep(0.01)
    assert time.monotonic() - began >= 0.2


# -- when -----------------------------------------------------------------------------------------


def statuses(service: RunningService, api: Api, *requests: str) -> list[int]:
    """The status of each request, such as `GET /shares`."""
    got = []
    for request in requests:
        method, _, path = request.partition(" ")
        with connected(service) as sock:
            send(sock, api, method, path)
            got.append(receive(sock).status)
    return got


def teapot(when: str = "*", status: int = 418, **row: Any) -> dict[str, Any]:
    return {"when": when, "fault": "answer", "status": status, **row}


@pytest.mark.parametrize(
    ("row", "which"),
    [
        ({}, [1, 0, 0, 0]),
        ({"times": 2}, [1, 1, 0, 0]),
        ({"times": "always"}, [1, 1, 1, 1]),
        ({"skip": 1}, [0, 1, 0, 0]),
        ({"skip": 1, "times": 2}, [0, 1, 1, 0]),
        ({"skip": 2, "times": "always"}, [0, 0, 1, 1]),
    ],
)
def test_how_often_and_after_how_many(
    service: RunningService, api: Api, row: dict[str, Any], which: list[int]
) -> None:
    service.set_faults(teapot(**row))
    assert [status == 418 for status in statuses(service, api, *["GET /shares"] * 4)] == [
        bool(each) for each in which
    ]


@pytest.mark.parametrize(
    ("when", "meant", "not_meant"),
    [
        ("*", ["GET /shares", "POST /shares", "GET /nothing"], []),
        ("GET *", ["GET /shares", "GET /shares/x"], ["POST /shares"]),
        ("GET", ["GET /shares"], ["POST /shares"]),
        ("* /shares", ["GET /shares", "POST /shares"], ["GET /shares/x", "GET /requests"]),
        (
            "POST /shares",
            ["POST /shares", "POST /shares?page=2"],
            ["GET /shares", "POST /requests"],
        ),
        (
            "DELETE /shares/*",
            ["DELETE /shares/x", "DELETE /shares/a%2Fb"],
            ["DELETE /shares", "DELETE /requests/x"],
        ),
        ("DELETE /shares/{shortCode}", ["DELETE /shares/x"], ["GET /shares/x"]),
        ("GET /shares/abc", ["GET /shares/abc"], ["GET /shares/abd"]),
        ("GET /requests/*/submissions", ["GET /requests/x/submissions"], ["GET /requests/x"]),
    ],
)
def test_which_requests_are_meant(
    service: RunningService, api: Api, when: str, meant: list[str], not_meant: list[str]
) -> None:
    service.set_faults(teapot(when, times="always"))
    assert set(statuses(service, api, *meant)) == {418}
    assert 418 not in statuses(service, api, *not_meant)


def test_the_first_row_that_means_a_request_and_has_times_left_happens_to_it(
    service: RunningService, api: Api
) -> None:
    service.set_faults(
        teapot("POST *", 500),
        teapot("*", 501, times=2),
        teapot("GET *", 502, skip=1, times="always"),
    )
    assert statuses(service, api, *["GET /shares"] * 3, "POST /shares", "GET /shares") == [
        501,
        501,
        200,
        500,
        502,
    ]


def test_faults_happen_to_v1_alone(service: RunningService, api: Api) -> None:
    code = api.created()
    service.set_faults(teapot(times="always"))
    assert control_client.send_request(service.origin, "GET", "/rehearsal")[0] == 200
    assert control_client.send_request(service.origin, "GET", f"/links/shares/{code}")[0] == 200
    assert control_client.send_request(service.origin, "GET", "/nothing")[0] == 404
    assert control_client.send_request(service.origin, "GET", "/v1/nothing")[0] == 418


# -- the control API -----------------------------------------------------------------------------


def at_door(service: RunningService, method: str, members: object = None) -> tuple[int, Any]:
    return control_client.send_request(service.origin, method, "/rehearsal/faults", members)


def test_the_door_sets_adds_shows_and_clears_a_plan(service: RunningService, api: Api) -> None:
    first, second = (
        teapot("GET /shares", times=2),
        teapot("POST *", after_commit=True, times="always"),
    )
    assert at_door(service, "PUT", {"faults": [second]})[0] == 200
    assert control_client.set_faults(service.origin, [first]) == [
        {**first, "applied": 0, "left": 2}
    ]
    assert at_door(service, "POST", {"faults": [second]})[0] == 200
    statuses(service, api, "GET /shares", "POST /shares")
    assert control_client.list_faults(service.base_url) == [
        {**first, "applied": 1, "left": 1},
        {**second, "applied": 1, "left": "always"},
    ]
    assert at_door(service, "DELETE") == (200, {"faults": []})
    assert statuses(service, api, "GET /shares") == [200]


def test_a_reset_of_the_service_ends_its_plan(service: RunningService) -> None:
    service.set_faults(teapot(times="always"))
    service.reset()
    assert service.faults() == []


def test_the_log_tells_which_request_met_which_fault(service: RunningService, api: Api) -> None:
    service.set_faults(
        {"fault": "reset", "after_commit": True, "skip": 1},
        {"fault": "half-body"},
        {"fault": "html"},
    )
    for _ in range(4):
        posted(service, api)
    told = control_client.call_control_api(service.origin, "GET", "/log")["requests"]
    assert [request["fault"] for request in told] == [
        "half-body after the commit",
        "reset after the commit",
        "html before the commit",
        None,
    ]


@pytest.mark.parametrize(
    ("members", "says"),
    [
        (
            {"faults": [{"fault": "html"}, {"fault": "resett"}]},
            "fault 2: 'resett' is not a fault; did you mean 'reset'?",
        ),
        ({"faults": {"fault": "html"}}, "array"),
        ({"fault": []}, "`faults`"),
        ({"faults": [], "more": 1}, "`faults`"),
    ],
)
def test_the_door_refuses_a_bad_plan_whole(
    service: RunningService, members: object, says: str
) -> None:
    service.set_faults({"fault": "close"})
    for method in ("PUT", "POST"):
        status, told = at_door(service, method, members)
        assert (status, says in told["message"]) == (400, True), told
    assert [progress.row.fault for progress in service.faults()] == ["close"]


def test_the_helper_at_the_door_raises_what_the_service_says(service: RunningService) -> None:
    with pytest.raises(
        control_client.RehearsalError, match="fault 1: 'hng' is not a fault; did you mean 'hang'"
    ):
        control_client.set_faults(service.origin, [{"fault": "hng"}])


# -- plans that cannot be -------------------------------------------------------------------------

BAD: dict[str, tuple[Any, str]] = {
    "no table": ("reset", "must be a table"),
    "no fault": ({}, "`fault` is missing"),
    "a fault that is a number": ({"fault": 1}, "`fault` is missing"),
    "an unknown fault": ({"fault": "halfbody"}, "did you mean 'half-body'?"),
    "a fault like nothing": ({"fault": "zzz"}, "use one of pass, reset"),
    "an unknown member": (
        {"fault": "html", "statsu": 500},
        "'statsu' is not a parameter of the fault html; did you mean 'status'?",
    ),
    "another fault's parameter": (
        {"fault": "reset", "seconds": 1},
        "'seconds' is not a parameter of the fault reset",
    ),
    "a missing parameter": ({"fault": "answer"}, "`status` is missing"),
    "a status that is text": (
        {"fault": "html", "status": "502"},
        "`status` must be a whole number from 200 to 599",
    ),
    "a status that is true": ({"fault": "html", "status": True}, "`status`"),
    "an interim status": ({"fault": "answer", "status": 100}, "`status`"),
    "seconds below 0": ({"fault": "delay", "seconds": -1}, "`seconds`"),
    "seconds that are no number": (
        {"fault": "delay", "seconds": float("nan")},
        "`seconds` must be a number",
    ),
    "text that is none": ({"fault": "body", "text": 1}, "`text`"),
    "text that is not Unicode": (
        {"fault": "body", "text": "\ud800"},
        "`text` must be valid Unicode",
    ),
    "base64 that is none": ({"fault": "body", "base64": "*"}, "`base64`"),
    "a header with a line break": (
        {"fault": "html", "headers": {"A": "b\r\nC: d"}},
        "`headers` A:",
    ),
    "a header name that is none": (
        {"fault": "html", "headers": {"a b": "c"}},
        "`headers` cannot hold",
    ),
    "a header that frames": (
        {"fault": "html", "headers": {"Content-Length": "1"}},
        "`headers` cannot hold",
    ),
    "headers that are no table": (
        {"fault": "html", "headers": ["A: b"]},
        "`headers` must be a table",
    ),
    "a wrong Retry-After": ({"fault": "rate-limit", "retry_after": "a\nb"}, "`retry_after`"),
    "members that are no table": ({"fault": "members", "change": []}, "`change` must be a table"),
    "names that are no texts": ({"fault": "members", "drop": [1]}, "`drop`"),
    "a redirect that is none": ({"fault": "redirect", "status": 200}, "`status`"),
    "before what comes after": (
        {"fault": "half-body", "after_commit": False},
        "after_commit cannot be false",
    ),
    "after_commit that is text": (
        {"fault": "reset", "after_commit": "yes"},
        "`after_commit` must be true or false",
    ),
    "no times": ({"fault": "reset", "times": 0}, "`times`"),
    "times for ever": ({"fault": "reset", "times": "forever"}, "`times` must be a whole number"),
    "a skip below 0": ({"fault": "reset", "skip": -1}, "`skip`"),
    "when that is no text": ({"fault": "reset", "when": 1}, "`when`"),
    "when without a method": ({"fault": "reset", "when": "/shares"}, "'/shares' is not a method"),
    "a method in small letters": (
        {"fault": "reset", "when": "post /shares"},
        "'post' is not a method",
    ),
    "an unknown route": ({"fault": "reset", "when": "POST /share"}, "did you mean 'POST /shares'?"),
    "a method that the route has not": (
        {"fault": "reset", "when": "PUT /shares"},
        "is not a route of the service",
    ),
    "a route with /v1": ({"fault": "reset", "when": "POST /v1/shares"}, "without /v1"),
    "a route that is no path": ({"fault": "reset", "when": "POST shares"}, "is not a route"),
}


@pytest.mark.parametrize(("row", "says"), BAD.values(), ids=BAD)
def test_a_row_that_cannot_be_is_refused_by_its_number(
    service: RunningService, row: Any, says: str
) -> None:
    service.set_faults({"fault": "close"})
    with pytest.raises(FaultPlanError, match=f"^fault 2: .*{re.escape(says)}") as raised:
        service.set_faults({"fault": "html"}, row)
    assert raised.value.number == 2
    assert [progress.row.fault for progress in service.faults()] == ["close"], (
        "the plan before stays"
    )


def test_a_service_does_not_start_with_a_plan_that_cannot_be() -> None:
    with pytest.raises(FaultPlanError, match="fault 1"):
        start(faults=[{"fault": "rest"}])


def test_every_parameter_has_a_default_that_its_own_check_takes() -> None:
    for name, fault in FAULTS.items():
        for parameter_name, parameter in fault.parameters.items():
            if parameter.default not in (..., None):
                assert parameter.check(parameter.default) is None, (name, parameter_name)


# -- the docs -------------------------------------------------------------------------------------


def documented(name: str) -> str:
    """A fault's row of the page."""
    fault = FAULTS[name]
    told = []
    for parameter_name, parameter in fault.parameters.items():
        default = (
            "" if parameter.default in (..., None, "", {}, []) else f" ({parameter.default!s})"
        )
        needed = ", needed" if parameter.default is ... else ""
        text = default.replace("\r\n", "")
        told.append(f"`{parameter_name}`: {parameter.help}{needed}{text}")
    commit = "after" if fault.changes_response else "either"
    return f"| `{name}` | {fault.help} | {commit} | {'; '.join(told)} |"


def test_the_page_has_the_table_of_faults_as_it_is() -> None:
    page = (ROOT / "docs/reference/rehearsal.md").read_text(encoding="utf-8")
    rows = re.search(r"\| fault \| .*\n\| --- .*\n((?:\| .*\n)+)", page)
    want = "".join(documented(name) + "\n" for name in FAULTS)
    assert rows is not None, want
    assert rows[1] == want, want


def test_the_plan_on_the_page_is_one(service: RunningService) -> None:
    import tomllib

    page = (ROOT / "docs/reference/rehearsal.md").read_text(encoding="utf-8")
    plans = re.findall(r"```toml\n(\[\[fault\]\]\n.*?)```", page, re.DOTALL)
    assert plans
    for plan in plans:
        service.set_faults(*tomllib.loads(plan)["fault"])


def test_a_service_that_fails_still_says_first_what_is_not_there(
    service: RunningService, api: Api
) -> None:
    share, request = api.created(), api.asked()
    service.set_faults({"fault": "fail", "times": "always"})
    assert said(api.http.delete("/shares/unknown")) == (404, 1)
    assert said(api.http.delete(f"/shares/{share}")) == (500, 42)
    assert said(api.http.get("/requests")) == (500, 11)
    assert said(api.http.delete(f"/requests/{request}")) == (500, 11)
    assert api.http.get("/shares").status_code == 200
    service.set_faults()
    assert (api.codes(), api.codes(what="requests")) == ([share], [request])
