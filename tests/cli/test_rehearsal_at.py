"""Which rehearsal `sealpipe rehearsal key | account | webhook` speaks to, and that it speaks to no
other program.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import SimpleNamespace

import httpx
import pytest

from sealpipe_rehearsal import control, control_client
from sealpipe_rehearsal.running_service import RunningService
from sealpipe_rehearsal.server import start
from support.terminal import Terminal, addresses

CREATE = ("rehearsal", "key", "create")
COMMANDS = [
    CREATE,
    ("rehearsal", "key", "list"),
    ("rehearsal", "account"),
    ("rehearsal", "webhook", "list"),
]


@pytest.fixture
def other() -> Iterator[RunningService]:
    """A rehearsal that somebody else left running."""
    with start() as running:
        yield running


def port(service: RunningService) -> str:
    return str(service.address.port)


def keys(service: RunningService) -> int:
    return len(control_client.list_keys(service.origin))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_key_is_made_where_the_base_url_says(
    bare: Terminal, service: RunningService, other: RunningService, host: str
) -> None:
    there = addresses(service)["SEALPIPE_BASE_URL"].replace("127.0.0.1", host)
    made = bare.sealpipe(*CREATE, "--scope", "all", SEALPIPE_BASE_URL=there)
    assert made.err == f"using the rehearsal at {there.removesuffix('/v1')}\n"
    assert (keys(service), keys(other)) == (1, 0)
    links = service.link_base_url
    environ = {
        "SEALPIPE_BASE_URL": there,
        "SEALPIPE_LINK_BASE_URL": links,
        "SEALPIPE_API_KEY": made.out.strip(),
    }
    shared = bare.sealpipe("share", "-f", "text:x", **environ)
    assert shared.code == 0, shared


def test_a_port_stands_before_the_base_url(
    user: Terminal, service: RunningService, other: RunningService
) -> None:
    before = keys(service)
    for done in (
        user.sealpipe(*CREATE, "--port", port(other)),
        user.sealpipe(*CREATE, SEALPIPE_REHEARSAL_PORT=port(other)),
    ):
        assert (done.code, done.err) == (0, "")
    assert (keys(service), keys(other)) == (before, 2)


def test_json_names_the_rehearsal_of_the_key(user: Terminal, service: RunningService) -> None:
    assert user.sealpipe(*CREATE, "--output", "json").json["base_url"] == service.base_url


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_is_called_where_the_base_url_is_a_service(
    user: Terminal, command: tuple[str, ...]
) -> None:
    done = user.sealpipe(*command, SEALPIPE_BASE_URL="https://api.example/v1")
    assert (done.code, done.out) == (2, "")
    assert "is no rehearsal: nothing was called" in done.err
    assert "--port" in done.err


@pytest.mark.parametrize("address", ["http://api.example/v1", "http://127.0.0.1:1/v2", "nonsense"])
def test_a_base_url_that_is_none_is_refused(user: Terminal, address: str) -> None:
    done = user.sealpipe(*CREATE, SEALPIPE_BASE_URL=address)
    assert (done.code, done.out) == (2, "")
    assert "the base URL" in done.err


def test_without_a_port_no_key_is_made_in_the_rehearsal_of_another_user(
    bare: Terminal, service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sealpipe_rehearsal.commands.keys.find_origin", lambda _: service.origin)
    assert bare.sealpipe(*CREATE).code == 0
    monkeypatch.setattr(control, "os", SimpleNamespace(getuid=lambda: os.getuid() + 1))
    done = bare.sealpipe(*CREATE)
    assert (done.code, done.out, keys(service)) == (2, "", 1)
    assert "was started by another user" in done.err


ANSWERS = {
    "another program": (200, b"<html>hello</html>", "text/html"),
    "another program's JSON": (200, b'{"service": "another"}', "application/json"),
    "JSON that is no object": (200, b"[]", "application/json"),
    "nothing there": (404, b'{"message": "no"}', "application/json"),
    "a page that wants a login": (401, b"", "text/plain"),
}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("command", COMMANDS)
def test_another_program_is_told_from_a_rehearsal(
    bare: Terminal, name: str, command: tuple[str, ...]
) -> None:
    status, body, kind = ANSWERS[name]
    asked: list[str] = []

    class Program(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.command} {self.path}")
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815  # the server's name

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Program) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        done = bare.sealpipe(*command, "--port", str(server.server_port))
        server.shutdown()
    assert (done.code, done.out, asked) == (2, "", ["GET /rehearsal"])
    assert f"the program at http://127.0.0.1:{server.server_port} is no rehearsal" in done.err


@pytest.mark.spec("gap.compromise")
def test_a_compromised_key_is_listed_as_one_to_revoke(
    user: Terminal, service: RunningService
) -> None:
    key = user.environ["SEALPIPE_API_KEY"]
    httpx.get(
        f"{service.base_url}/shares", headers={"Authorization": f"Bearer {key}"}, trust_env=False
    )
    (line,) = user.sealpipe("rehearsal", "key", "list").out.splitlines()
    assert line.split("\t")[-1] == "compromised: revoke"
    user.sealpipe("rehearsal", "key", "revoke", line.split("\t")[0])
    assert user.sealpipe("rehearsal", "key", "list").out.rstrip("\n").endswith("\trevoked")


def test_any_number_of_keys_can_be_made_for_the_default_account(user: Terminal) -> None:
    assert [user.sealpipe(*CREATE).code for _ in range(7)] == [0] * 7
