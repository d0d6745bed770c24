"""POST /v1/mcp as bytes: the transport, JSON-RPC, and what is answered to what is none of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from sealpipe_rehearsal.running_service import RunningService
from sealpipe_service.mcp import MOST_OF_BATCH
from service.callers import NO_TLS, Api, refusal
from service.mcp_rows import SCOPES, check, world

BOTH = "application/json, text/event-stream"
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "t", "version": "1"},
}


def post(api: Api, content: bytes | object, **headers: str) -> httpx.Response:
    """A message to the endpoint; a header is left out with the value `-`."""
    sent = {"Content-Type": "application/json", "Accept": BOTH}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    request = api.http.build_request("POST", "/mcp", content=body, headers=sent)
    for name in [name for name, value in sent.items() if value == "-"]:
        del request.headers[name]
    return api.http.send(request)


def message(
    method: str, params: object = ..., number: object = 1, **more: object
) -> dict[str, Any]:
    made: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": number,
        "method": method,
        "params": params,
        **more,
    }
    return {name: value for name, value in made.items() if value is not ...}


def result(response: httpx.Response) -> dict[str, Any]:
    told = response.json()
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert told.keys() == {"jsonrpc", "id", "result"}
    answered: dict[str, Any] = told["result"]
    return answered


@pytest.mark.spec("route.mcp", "gap.mcp", "mcp.json-rpc")
@pytest.mark.parametrize(
    ("asked", "spoken"),
    [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
        ("", "2025-11-25"),
    ],
)
def test_initialize_agrees_on_a_revision(api: Api, asked: str, spoken: str) -> None:
    told = result(post(api, message("initialize", {**HELLO, "protocolVersion": asked})))
    assert (told["protocolVersion"], told["capabilities"]) == (spoken, {"tools": {}})
    assert told["serverInfo"].keys() >= {"name", "version"}


def test_a_response_has_the_id_of_its_request_and_there_is_no_session(api: Api) -> None:
    for number in (0, 7, -1, 2**53, "a", ""):
        response = post(api, message("ping", number=number))
        assert response.json() == {"jsonrpc": "2.0", "id": number, "result": {}}
        assert "mcp-session-id" not in response.headers


@pytest.mark.parametrize(
    "body",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
        {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "expire_share"}},
        {"jsonrpc": "2.0", "method": "no/such"},
        {"jsonrpc": "2.0", "id": 3, "result": {}},
        {"jsonrpc": "2.0", "id": 3, "error": {"code": 1, "message": "x"}},
    ],
)
def test_what_wants_no_response_is_202_without_a_body(api: Api, body: object) -> None:
    response = post(api, body)
    assert (response.status_code, response.content) == (202, b"")
    assert "content-type" not in response.headers


ERRORS: dict[str, tuple[bytes | object, int, int, object]] = {
    "no JSON": (b"{", 400, -32700, None),
    "nothing": (b"", 400, -32700, None),
    "not UTF-8": (b'{"a": "\xff"}', 400, -32700, None),
    "a number that JSON has not": (
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": NaN}',
        400,
        -32700,
        None,
    ),
    "brackets without an end": (b"[" * 100_000, 400, -32700, None),
    "brackets to any end": (b"[" * 501 + b"]" * 501, 400, -32700, None),
    "a text": ("ping", 400, -32600, None),
    "null": (None, 400, -32600, None),
    "no jsonrpc": ({"id": 1, "method": "ping"}, 400, -32600, None),
    "jsonrpc 1.0": ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, 400, -32600, None),
    "unknown method": ({"jsonrpc": "2.0", "id": 1}, 400, -32600, None),
    "a method that is no text": (message("ping") | {"method": 7}, 400, -32600, None),
    "an id that is null": (message("ping", number=None), 400, -32600, None),
    "an id that is true": (message("ping", number=True), 400, -32600, None),
    "an id with a fraction": (message("ping", number=1.5), 400, -32600, None),
    "an id that is an object": (message("ping", number={}), 400, -32600, None),
    "a result and an error": (
        {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}},
        400,
        -32600,
        None,
    ),
    "a method that is none": (message("tools/run"), 200, -32601, 1),
    "one of another kind of server": (message("resources/list"), 200, -32601, 1),
    "params that are an array": (message("ping", []), 200, -32602, 1),
    "params that are null": (message("ping", None), 200, -32602, 1),
    "initialize without a revision": (message("initialize", {}), 200, -32602, 1),
    "a cursor that is none": (message("tools/list", {"cursor": "x"}), 200, -32602, 1),
    "a call of nothing": (message("tools/call", {}), 200, -32602, 1),
    "a call of a tool that is none": (
        message("tools/call", {"name": "read_share"}, "x"),
        200,
        -32602,
        "x",
    ),
    "arguments that are a list": (
        message("tools/call", {"name": "get_share", "arguments": []}),
        200,
        -32602,
        1,
    ),
}


@pytest.mark.spec("mcp.json-rpc")
@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_those_of_json_rpc(api: Api, name: str) -> None:
    content, status, code, number = ERRORS[name]
    response = post(api, content)
    told = response.json()
    assert (response.status_code, told["error"]["code"], told["id"]) == (status, code, number)
    assert told.keys() == {"jsonrpc", "id", "error"}
    assert told["error"]["message"]
    assert result(post(api, message("ping"))) == {}, "and it goes on"


HEADERS: dict[str, tuple[dict[str, str], int]] = {
    "a revision that is not spoken": ({"MCP_Protocol_Version": "1999-01-01"}, 400),
    "only JSON is accepted": ({"Accept": "application/json"}, 406),
    "only a stream is accepted": ({"Accept": "text/event-stream"}, 406),
    "a page of somebody else's": ({"Origin": "https://evil.example"}, 403),
    "a page of a null origin": ({"Origin": "null"}, 403),
    "a page whose name was made to resolve to here": (
        {"Host": "evil.example", "Origin": "http://evil.example"},
        403,
    ),
    "no page, by a foreign name": ({"Host": "rehearsal.example"}, 200),
    "every kind is accepted": ({"Accept": "*/*"}, 200),
    "nothing is said of what is accepted": ({"Accept": "-"}, 200),
    "kinds with weights": ({"Accept": "text/*;q=0.5 , APPLICATION/JSON; q=1"}, 200),
    "a charset": ({"Content_Type": "application/json; charset=utf-8"}, 200),
    "the oldest revision": ({"MCP_Protocol_Version": "2025-03-26"}, 200),
    "a session that nobody began": ({"Mcp_Session_Id": "abc"}, 200),
}


@pytest.mark.spec("gap.mcp-accept")
@pytest.mark.parametrize("name", HEADERS)
def test_headers_are_what_the_transport_wants(api: Api, name: str) -> None:
    headers, status = HEADERS[name]
    response = post(api, message("ping"), **headers)
    assert response.status_code == status
    assert ("error" in response.json()) == (status != 200)


def test_its_own_page_may_ask(service: RunningService, api: Api) -> None:
    assert post(api, message("ping"), Origin=service.origin).status_code == 200


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_there_is_no_stream_to_listen_to_and_no_session_to_end(api: Api, method: str) -> None:
    response = api.http.request(method, "/mcp", headers={"Accept": "text/event-stream"})
    assert (response.status_code, response.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("path", ["/mcp/", "/mcp/x", "/MCP"])
def test_it_is_at_one_path(api: Api, path: str) -> None:
    assert api.http.post(path, json=message("ping"), headers={"Accept": BOTH}).status_code == 404


def test_the_first_revision_has_batches_and_no_other(api: Api) -> None:
    batch = [
        message("ping", number=1),
        message("notifications/x", number=...),
        message("no/such", number="b"),
    ]
    response = post(api, batch)
    assert response.status_code == 200
    assert [(each["id"], "result" in each) for each in response.json()] == [(1, True), ("b", False)]
    assert post(api, batch[1:2]).status_code == 202
    for content in ([], [message("initialize", HELLO)]):
        assert post(api, content).json()["error"]["code"] == -32600
    assert post(api, batch, MCP_Protocol_Version="2025-11-25").status_code == 400
    assert post(api, batch[1:2] * MOST_OF_BATCH).status_code == 202
    assert post(api, batch[1:2] * (MOST_OF_BATCH + 1)).status_code == 400, "it is one of a rate"


# -- behind the same gateway -----------------------------------------------------------------------


def test_the_gateway_and_the_rate_stand_before_it(service: RunningService, api: Api) -> None:
    def ask(bearer: str | None) -> httpx.Response:
        headers = {"Accept": BOTH} | ({"Authorization": bearer} if bearer else {})
        url = f"{service.base_url}/mcp"
        return httpx.post(
            url, json=message("ping"), headers=headers, trust_env=False, verify=NO_TLS
        )

    assert (ask(None).status_code, ask("Bearer nonsense").status_code) == (401, 403)
    assert ask(f"Bearer {api.credential.reveal()}").status_code == 403, (
        "three parts are too many here, too"
    )
    service.set_account(requests_per_minute=1)
    assert [post(api, message("ping")).status_code for _ in range(2)] == [200, 200]
    assert refusal(post(api, message("ping"))) == (429, 107)


@pytest.mark.spec("mcp.gated", "mcp.scope-missing")
@pytest.mark.parametrize("tool", SCOPES)
def test_a_missing_scope_is_200_and_a_result_that_is_an_error(
    service: RunningService, api: Api, caller: Callable[..., Api], tool: str
) -> None:
    there = world(service, api)
    call = message("tools/call", {"name": tool, "arguments": there.arguments(tool)})
    other = caller(
        service,
        scopes=[scope for scope in ("shares:read", "shares:write") if scope != SCOPES[tool]],
    )
    told = result(post(other, call))
    assert (told["isError"], len(told["content"])) == (True, 1)
    assert SCOPES[tool] in told["content"][0]["text"]
    assert tool in told["content"][0]["text"]
    told = result(post(caller(service, scopes=[SCOPES[tool]]), call))
    assert "isError" not in told
    check(service, there, tool, told["structuredContent"])


def test_the_tools_are_listed_to_every_key_with_schemas_that_are_some(api: Api) -> None:
    tools = result(post(api, message("tools/list")))["tools"]
    assert [tool["name"] for tool in tools if tool["annotations"].get("readOnlyHint")] == [
        "list_shares",
        "get_share",
        "list_webhooks",
        "share_stats",
    ]
    for tool in tools:
        assert tool["inputSchema"]["type"] == "object"
        assert (
            set(tool["inputSchema"].get("required", [])) <= tool["inputSchema"]["properties"].keys()
        )


def test_asking_twice_makes_two_requests(service: RunningService, api: Api) -> None:
    there = world(service, api)
    call = message(
        "tools/call",
        {"name": "request_secret_from", "arguments": there.arguments("request_secret_from")},
    )
    codes = {result(post(api, call))["structuredContent"]["short_code"] for _ in range(2)}
    assert set(api.codes(what="requests")) == codes
    assert len(codes) == 2
