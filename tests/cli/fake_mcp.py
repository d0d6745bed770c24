"""A fake of the hosted MCP endpoint on a real socket, written from the protocol's public documents.

It holds a client to what those say it must do, and answers 400 where it does not. How it answers is
the test's to choose: `form`, `page`, `sessions`, `revision`, and `queued`, which replaces its
answers to a method one by one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from support.fake_web import Asked, FakeWeb, Fault, Reply, drop

Form = Literal["object", "stream", "endless stream"]


@dataclass(frozen=True)
class Message:
    """One POST as it arrived."""

    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def method(self) -> str:
        return str(self.body["method"])


@dataclass(frozen=True)
class FakeTool:
    """A tool, the scope that it needs, and what it does."""

    scope: str
    properties: dict[str, Any]
    work: Callable[[dict[str, Any]], list[dict[str, Any]]]
    about: str = "Does it.\nAt length."


def text(words: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": words}]


TOOLS = {
    "list_shares": FakeTool(
        "shares:read", {"limit": {"type": "integer"}}, lambda given: text(json.dumps(given))
    ),
    "get_share": FakeTool(
        "shares:read", {"code": {"type": "string"}}, lambda given: text(json.dumps(given))
    ),
    "share_stats": FakeTool("stats:read", {}, lambda _: text("3 active\n2 expired")),
    "expire_share": FakeTool(
        "shares:write", {"code": {"type": "string"}}, lambda _: text("expired")
    ),
}


class FakeMcp(FakeWeb):
    """The server. `messages` are all that it received, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.tools = dict(TOOLS)
        self.scopes = {tool.scope for tool in TOOLS.values()}
        self.form: Form = "object"
        self.page = 100
        self.sessions = True
        self.revision = "2025-11-25"
        self.queued: dict[str, list[Reply | Fault]] = {}
        self.messages: list[Message] = []
        self.problems: list[str] = []
        self.session = "session-0"
        self.ready = False

    @property
    def base_url(self) -> str:
        return f"{super().base_url}/v1"

    def methods(self) -> list[str]:
        return [message.method for message in self.messages]

    def end_session(self) -> None:
        """Forget the session that there is, as a server may at any time."""
        self.session = "forgotten"

    def respond(self, asked: Asked) -> Reply | None:
        message = Message(asked.headers, asked.json)
        self.messages.append(message)
        queue = self.queued.get(message.method)
        todo = (
            (queue.pop(0) if queue else self.react(message)) if asked.target == "/v1/mcp" else drop
        )
        return todo if isinstance(todo, Reply) else todo(self, asked)

    def react(self, message: Message) -> Reply:
        """What the protocol has it answer."""
        problem = self._problem(message)
        if problem:
            self.problems.append(problem)
            return Reply(400, problem)
        if message.method == "initialize":
            self.session = f"session-{len(self.messages)}"
            self.ready = False
            headers = {"Mcp-Session-Id": self.session} if self.sessions else {}
            info = {
                "protocolVersion": self.revision,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "fake"},
            }
            return self._result(message, info, headers)
        if self.sessions and message.headers.get("mcp-session-id") != self.session:
            return Reply(404, json.dumps(_error(None, -32001, "Session not found")))
        if message.method == "notifications/initialized":
            self.ready = True
            return Reply(202)
        params = message.body.get("params", {})
        if message.method == "tools/list":
            return self._result(message, self._list(int(params.get("cursor", "0"))))
        if message.method == "tools/call" and params.get("name") in self.tools:
            return self._result(message, self._call(params["name"], params["arguments"]))
        return self._send(
            message, _error(message.body["id"], -32602, f"Unknown tool: {params.get('name')}")
        )

    def _problem(self, message: Message) -> str:
        accepted = message.headers.get("accept", "")
        first = message.method == "initialize"
        checks = {
            "no Accept of both kinds": "application/json" in accepted
            and "text/event-stream" in accepted,
            "no JSON": message.headers.get("content-type") == "application/json",
            "no JSON-RPC 2.0": message.body.get("jsonrpc") == "2.0",
            "a notification has no id": ("id" in message.body)
            != message.method.startswith("notifications/"),
            "an id twice": first or self._fresh(message),
            "the wrong revision": first
            or message.headers.get("mcp-protocol-version") == self.revision,
            "a session id before there is one": not first
            or "mcp-session-id" not in message.headers,
            "no handshake": first or message.method.startswith("notifications/") or self.ready,
        }
        return next((name for name, fine in checks.items() if not fine), "")

    def _fresh(self, message: Message) -> bool:
        begun = max(n for n, method in enumerate(self.methods()) if method == "initialize")
        earlier = [
            each.body
            for each in self.messages[begun:-1]
            if each.body.get("id", each) == message.body.get("id")
        ]
        return all(body == message.body for body in earlier)  # the same request may be sent again

    def _list(self, start: int) -> dict[str, Any]:
        names = list(self.tools)[start : start + self.page]
        rows = [
            {
                "name": name,
                "description": self.tools[name].about,
                "inputSchema": {"type": "object", "properties": self.tools[name].properties},
            }
            for name in names
        ]
        more = start + self.page < len(self.tools)
        return {"tools": rows, **({"nextCursor": str(start + self.page)} if more else {})}

    def _call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        tool = self.tools[name]
        if tool.scope not in self.scopes:
            return {
                "isError": True,
                "content": text(f"This key has not the scope {tool.scope}, which {name} needs."),
            }
        return {"content": tool.work(arguments)}

    def _result(
        self, message: Message, result: dict[str, Any], headers: Mapping[str, str] | None = None
    ) -> Reply:
        return self._send(
            message, {"jsonrpc": "2.0", "id": message.body["id"], "result": result}, headers
        )

    def _send(
        self, message: Message, response: dict[str, Any], headers: Mapping[str, str] | None = None
    ) -> Reply:
        if self.form == "object":
            return Reply(
                200, json.dumps(response), {"Content-Type": "application/json", **(headers or {})}
            )
        note = {
            "jsonrpc": "2.0",
            "method": "notifications/message",
            "params": {"level": "info", "data": "working"},
        }
        asks = {"jsonrpc": "2.0", "id": message.body["id"], "method": "ping"}
        parts = [": hello\r\n\r\nid: 1\r\ndata:\r\n\r\n"]
        parts += [f"event: message\r\ndata: {json.dumps(each)}\r\n\r\n" for each in (note, asks)]
        parts += [
            "".join(f"data: {line}\n" for line in json.dumps(response, indent=1).split("\n")) + "\n"
        ]
        kind = {"Content-Type": "text/event-stream; charset=utf-8"}
        return Reply(
            200, "".join(parts), {**kind, **(headers or {})}, endless=self.form == "endless stream"
        )


def _error(number: object, code: int, words: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": words}}


@pytest.fixture
def mcp() -> Iterator[FakeMcp]:
    with FakeMcp() as server:
        yield server
