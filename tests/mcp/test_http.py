"""The server over HTTP: loopback only, a token for each request, our own host's name only, and no
work while idle.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import selectors
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import pytest
from mcp import Client, types
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server

from sealpipe.errors import SettingError, StateError, UsageError
from sealpipe.mcp import http as mcp_http
from sealpipe.mcp.token_file import load_token
from sealpipe.secret import Secret

T = TypeVar("T")
TOKEN = "canary-token-of-this-test"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "by hand", "version": "1"},
    },
}
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


class CountedSelector(selectors.DefaultSelector):
    """Remembers for how long the event loop meant to sleep; None is for ever."""

    sleep: float | None = 0

    def select(self, timeout: float | None = None) -> Any:
        self.sleep = timeout
        return super().select(timeout)


def run(test: Coroutine[Any, Any, T], selector: selectors.BaseSelector | None = None) -> T:
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        return runner.run(asyncio.wait_for(test, 60))


@dataclass
class Running:
    """A server with one tool, `wait`, that answers as soon as `go` is set."""

    port: int
    stop: asyncio.Event
    ended: asyncio.Task[None]
    go: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def client(self, mode: str) -> AsyncIterator[Client]:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            httpx2.AsyncClient(headers=headers) as line,
            Client(
                streamable_http_client(f"http://127.0.0.1:{self.port}/mcp", http_client=line),
                mode=mode,
            ) as client,
        ):
            yield client

    async def send(
        self,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        method: str = "POST",
        path: str = "/mcp",
    ) -> tuple[int, bytes]:
        """Send one request by hand. Returns status and body."""
        return await asyncio.to_thread(self._send, method, path, headers, body)

    def _send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> tuple[int, bytes]:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            line.request(
                method,
                path,
                json.dumps(INITIALIZE).encode() if body is None else body,
                dict(headers),
            )
            response = line.getresponse()
            return response.status, response.read()
        finally:
            line.close()


@asynccontextmanager
async def serving() -> AsyncIterator[Running]:
    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[types.Tool(name="wait", input_schema={"type": "object"})]
        )

    async def call_tool(_context: Any, _params: Any) -> types.CallToolResult:
        running.waiting.append("waits")
        try:
            await running.go.wait()
        except asyncio.CancelledError:
            running.waiting.append("cancelled")
            raise
        return types.CallToolResult(content=[types.TextContent(type="text", text="done")])

    sock = mcp_http.listen("127.0.0.1", 0)
    stop, ready = asyncio.Event(), asyncio.Event()
    server = Server("of the test", on_list_tools=list_tools, on_call_tool=call_tool)
    ended = asyncio.create_task(mcp_http.serve(server, sock, Secret(TOKEN), stop, ready.set))
    running = Running(sock.getsockname()[1], stop, ended)
    await ready.wait()
    try:
        yield running
    finally:
        stop.set()
        await ended


def test_a_port_in_use_is_an_error_with_its_number() -> None:
    with mcp_http.listen("127.0.0.1", 0) as sock:
        sock.listen()
        port = sock.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port} of 127.0.0.1 cannot be used"):
            mcp_http.listen("127.0.0.1", port)


def test_a_token_is_made_once_in_a_file_of_our_own(tmp_path: Path) -> None:
    file = tmp_path / "token"
    token = load_token(file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert len(token.reveal()) == 43
    assert load_token(file) == token
    assert load_token(tmp_path / "other") != token


def test_a_token_that_others_could_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    load_token(file)
    file.chmod(0o640)
    with pytest.raises(SettingError, match="other users can read") as refused:
        load_token(file)
    assert f"chmod 600 {file}" in str(refused.value.remedy)


@pytest.mark.parametrize("text", ["", "short", "x" * 43 + "\n\n", "x" * 5000, "\xff" * 43])
def test_a_file_without_a_token_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "token"
    file.write_text(text, "latin-1")
    file.chmod(0o600)
    with pytest.raises(SettingError, match="does not hold a token") as refused:
        load_token(file)
    assert not text or text not in str(refused.value)


def test_a_token_file_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="cannot be read or made"):
        load_token(tmp_path / "missing" / "token")


AUTHORIZED = {"Authorization": f"Bearer {TOKEN}", **HEADERS}
REFUSED: Mapping[str, tuple[int, Callable[[Running], Coroutine[Any, Any, tuple[int, bytes]]]]] = {
    "no token": (401, lambda it: it.send(HEADERS)),
    "another token": (
        401,
        lambda it: it.send({**HEADERS, "Authorization": "Bearer canary-token-of-this-tess"}),
    ),
    "the token's beginning": (
        401,
        lambda it: it.send({**HEADERS, "Authorization": f"Bearer {TOKEN[:-1]}"}),
    ),
    "more than the token": (
        401,
        lambda it: it.send({**HEADERS, "Authorization": f"Bearer {TOKEN} x"}),
    ),
    "an empty token": (401, lambda it: it.send({**HEADERS, "Authorization": "Bearer "})),
    "bytes that are no text": (
        401,
        lambda it: it.send({**HEADERS, "Authorization": "Bearer \xff\xfe"}),
    ),
    "the token by another scheme": (
        401,
        lambda it: it.send({**HEADERS, "Authorization": f"Basic {TOKEN}"}),
    ),
    "the token without a scheme": (401, lambda it: it.send({**HEADERS, "Authorization": TOKEN})),
    "the token in the address": (401, lambda it: it.send(HEADERS, path=f"/mcp?token={TOKEN}")),
    "the token as a cookie": (401, lambda it: it.send({**HEADERS, "Cookie": f"token={TOKEN}"})),
    "another path": (404, lambda it: it.send(AUTHORIZED, path="/")),
    "a path that leads here": (404, lambda it: it.send(AUTHORIZED, path="/x/../mcp")),
    "the path of a login": (
        404,
        lambda it: it.send(HEADERS, b"", method="GET", path="/.well-known/oauth"),
    ),
    "a stream of the server's own": (405, lambda it: it.send(AUTHORIZED, b"", method="GET")),
    "another method": (405, lambda it: it.send(AUTHORIZED, method="PUT")),
    "a preflight of a browser": (
        401,
        lambda it: it.send({"Origin": "http://x.example"}, b"", method="OPTIONS"),
    ),
    "another host's name": (
        421,
        lambda it: it.send({**AUTHORIZED, "Host": f"rebound.example:{it.port}"}),
    ),
    "our address without the port": (421, lambda it: it.send({**AUTHORIZED, "Host": "127.0.0.1"})),
    "our name as a part of another": (
        421,
        lambda it: it.send({**AUTHORIZED, "Host": "localhost.x.example:80"}),
    ),
    "a page of another origin": (
        403,
        lambda it: it.send({**AUTHORIZED, "Origin": "https://x.example"}),
    ),
    "a page of a file": (403, lambda it: it.send({**AUTHORIZED, "Origin": "null"})),
    "a page of another port": (
        403,
        lambda it: it.send({**AUTHORIZED, "Origin": f"http://127.0.0.1:{it.port + 1}"}),
    ),
    "a form of a browser": (400, lambda it: it.send({**AUTHORIZED, "Content-Type": "text/plain"})),
    "a body that is too large": (
        413,
        lambda it: it.send(AUTHORIZED, b" " * (mcp_http.MAX_BODY + 1)),
    ),
    "a body that is no JSON": (400, lambda it: it.send(AUTHORIZED, b"{")),
    "a session that there is not": (
        404,
        lambda it: it.send({**AUTHORIZED, "Mcp-Session-Id": "0" * 32}),
    ),
    "a session's end that there is not": (
        404,
        lambda it: it.send({**AUTHORIZED, "Mcp-Session-Id": "1"}, method="DELETE"),
    ),
}


def test_what_a_stranger_sends_gets_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    async def send_all() -> dict[str, tuple[int, bytes]]:
        async with serving() as running:
            found = {name: await send(running) for name, (_, send) in REFUSED.items()}
            found["what is allowed"] = await running.send(AUTHORIZED)
            assert not running.waiting
            return found

    found = run(send_all())
    expected = {name: status for name, (status, _) in REFUSED.items()} | {"what is allowed": 200}
    assert {name: status for name, (status, _) in found.items()} == expected
    assert not [name for name, (_, body) in found.items() if TOKEN.encode() in body]
    assert TOKEN not in "".join(capfd.readouterr())


def test_two_clients_of_both_protocols_are_served_at_once() -> None:
    async def call_both() -> list[types.CallToolResult]:
        async with (
            serving() as running,
            running.client("auto") as new,
            running.client("legacy") as old,
        ):
            calls = [asyncio.create_task(each.call_tool("wait", {})) for each in (new, old)]
            while len(running.waiting) < 2:
                await asyncio.sleep(0.01)
            running.go.set()
            return [await call for call in calls]

    results = run(call_both())
    texts = [result.content[0].text for result in results]  # type: ignore[union-attr]
    assert texts == ["done", "done"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_open_call_is_cancelled_when_the_server_ends(
    mode: str, capfd: pytest.CaptureFixture[str]
) -> None:
    async def end_in_a_call() -> list[str]:
        async with serving() as running:
            async with running.client(mode) as client:
                call = asyncio.create_task(client.call_tool("wait", {}))
                while not running.waiting:
                    await asyncio.sleep(0.01)
                running.stop.set()
                await running.ended
                call.cancel()
                await asyncio.gather(call, return_exceptions=True)
            with pytest.raises(ConnectionRefusedError):
                await running.send(AUTHORIZED)
            return running.waiting

    assert run(end_in_a_call()) == ["waits", "cancelled"]
    assert "Traceback" not in capfd.readouterr().err


def test_the_port_is_free_again_at_once() -> None:
    async def serve_and_end() -> int:
        async with serving() as running:
            await running.send(AUTHORIZED)
            return running.port

    with socket.create_server(("127.0.0.1", run(serve_and_end()))):
        pass


def test_nothing_wakes_an_idle_server() -> None:
    """The loop means to sleep for ever, or until a session ends that nobody used for half an
    hour.
    """
    selector = CountedSelector()

    async def sleep_between_calls() -> None:
        async with serving() as running:
            running.go.set()
            await asyncio.get_running_loop().run_in_executor(None, _wait_for_sleep, selector)
            for mode in ("auto", "legacy"):
                async with running.client(mode) as client:
                    await client.call_tool("wait", {})
            await asyncio.get_running_loop().run_in_executor(None, _wait_for_sleep, selector)

    run(sleep_between_calls(), selector)


def _wait_for_sleep(selector: CountedSelector) -> None:
    deadline = time.monotonic() + 50
    while selector.sleep is not None and selector.sleep < 50:
        assert time.monotonic() < deadline, f"the loop sleeps {selector.sleep} s at a time"
        time.sleep(0.02)


def test_connections_without_the_token_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def flood() -> None:
        async with serving() as running:
            known = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
            with ExitStack() as stack:
                stack.callback(known.close)
                await asyncio.to_thread(_initialize, known)
                first = stack.enter_context(_connect(running.port))
                for _ in range(mcp_http.MOST_STRANGERS):
                    stack.enter_context(_connect(running.port))
                    await asyncio.sleep(0)
                assert await asyncio.to_thread(_is_closed, first)
                assert (await running.send(AUTHORIZED))[0] == 200
                await asyncio.to_thread(_initialize, known)

    run(flood())
    monkeypatch.setattr(mcp_http, "PATIENCE", 0.05)

    async def drip() -> None:
        async with serving() as running:
            with _connect(running.port) as line:
                line.sendall(b"POST /mcp HTTP/1.1\r\nHost: ")
                assert await asyncio.to_thread(_is_closed, line)

    run(drip())


def _connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def _is_closed(line: socket.socket) -> bool:
    try:
        return line.recv(1) == b""
    except ConnectionResetError:
        return True


def _initialize(line: http.client.HTTPConnection) -> None:
    line.request("POST", "/mcp", json.dumps(INITIALIZE).encode(), dict(AUTHORIZED))
    response = line.getresponse()
    assert (response.status, bool(response.read())) == (200, True)
