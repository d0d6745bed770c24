"""The tools through the official `mcp` package and through our own client: every one, with and
without its scope.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

from sealpipe import Client, MissingScopeError, ToolError
from sealpipe.secret import Secret
from sealpipe_rehearsal.running_service import RunningService
from service.callers import Api, two_parts
from service.mcp_rows import SCOPES, World, check, world
from support.terminal import Terminal

if TYPE_CHECKING:
    from mcp.client.client import Client as Official

ALL = (
    "shares:read",
    "shares:write",
    "requests:read",
    "requests:write",
    "stats:read",
    "webhooks:manage",
)
MODES = ("legacy", "auto")


@pytest.fixture
def there(service: RunningService, api: Api) -> World:
    return world(service, api)


def others(tool: str) -> tuple[str, ...]:
    """Every scope but the tool's."""
    return tuple(scope for scope in ALL if scope != SCOPES[tool])


def official(
    service: RunningService,
    key: Secret,
    talk: Callable[[Official], Awaitable[Any]],
    mode: str = "legacy",
) -> Any:
    """A session of the official client, from initialize to its end."""
    # Imported here: it takes a second, which every worker would spend to know this file's tests.
    import httpx2
    from mcp.client.client import Client as Official
    from mcp.client.streamable_http import streamable_http_client

    async def session() -> Any:
        headers = {"Authorization": f"Bearer {two_parts(key)}"}
        async with httpx2.AsyncClient(
            headers=headers, trust_env=False, verify=False
        ) as http:  # plain HTTP
            transport = streamable_http_client(f"{service.base_url}/mcp", http_client=http)
            async with Official(transport, mode=mode) as client:
                return await talk(client)

    return asyncio.run(session())


def ours(service: RunningService, key: Secret) -> Client:
    return Client(
        api_key=key, base_url=service.base_url, link_base_url=service.link_base_url, deadline=10
    )


@pytest.mark.parametrize("mode", MODES)
def test_the_official_client_passes_a_session(
    service: RunningService, there: World, mode: str
) -> None:
    async def talk(client: Official) -> dict[str, Any]:
        assert client.server_info is None or client.server_info.name == "svc-rehearsal"
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == set(SCOPES)
        found = {}
        for tool in SCOPES:  # in the table's order: what reads the share comes before what ends it
            if tool not in ("expire_share", "share_stats"):
                found[tool] = await client.call_tool(tool, there.arguments(tool))
        for tool in ("share_stats", "expire_share"):
            found[tool] = await client.call_tool(tool, there.arguments(tool))
        return found

    found = official(service, service.create_key(), talk, mode)
    assert found.keys() == SCOPES.keys()
    for tool, result in found.items():
        assert not result.is_error, result
        (block,) = result.content
        assert json.loads(block.text) == result.structured_content
        check(service, there, tool, result.structured_content)


@pytest.mark.spec(
    "mcp.shares-read",
    "mcp.shares-write",
    "mcp.requests-write",
    "mcp.stats-read",
    "mcp.scope-missing",
)
@pytest.mark.parametrize("tool", SCOPES)
def test_the_official_client_needs_the_scope_and_no_other(
    service: RunningService, there: World, tool: str
) -> None:
    def called(*scopes: str) -> Any:
        key = service.create_key(scopes=scopes)
        return official(service, key, lambda client: client.call_tool(tool, there.arguments(tool)))

    refused = called(*others(tool))
    assert refused.is_error
    (block,) = refused.content
    assert SCOPES[tool] in block.text
    assert tool in block.text
    done = called(SCOPES[tool])
    assert not done.is_error
    check(service, there, tool, done.structured_content)


@pytest.mark.spec(
    "scopes.webhook-tools",
    "mcp.shares-read",
    "mcp.shares-write",
    "mcp.requests-write",
    "mcp.stats-read",
)
@pytest.mark.parametrize("tool", SCOPES)
def test_our_client_needs_the_scope_and_no_other(
    service: RunningService, there: World, tool: str
) -> None:
    for scopes in (others(tool), ("webhooks:manage",), ()):
        with (
            ours(service, service.create_key(scopes=scopes)) as client,
            pytest.raises(MissingScopeError) as refused,
        ):
            client.call_tool(tool, there.arguments(tool))
        assert SCOPES[tool] in f"{refused.value.remedy}"
        assert tool in str(refused.value)
    assert service.events() == [], "nothing was done"
    with ours(service, service.create_key(scopes=[SCOPES[tool]])) as client:
        result = client.call_tool(tool, there.arguments(tool))
    assert result.structured is not None
    assert json.loads(result.text) == result.structured
    check(service, there, tool, dict(result.structured))


def test_our_client_lists_the_eight_with_their_arguments(service: RunningService) -> None:
    with ours(service, service.create_key(scopes=[])) as client:
        tools = {tool.name: tool for tool in client.list_tools()}
    assert tools.keys() == SCOPES.keys()
    for name, tool in tools.items():
        assert SCOPES[name] in (tool.description or "")
        assert (tool.input_schema["type"], tool.input_schema["additionalProperties"]) == (
            "object",
            False,
        )
    required = {name: tool.input_schema.get("required", []) for name, tool in tools.items()}
    assert required["request_secret_from"] == ["title", "public_key", "fields"]
    assert (required["expire_share"], required["list_shares"]) == (["short_code"], [])


MISTAKES: dict[str, tuple[str, dict[str, Any], str]] = {
    "an argument that is missing": ("get_share", {}, "short_code is required"),
    "one of another type": ("get_share", {"short_code": 7}, "short_code must be a string"),
    "one that nobody knows": ("share_stats", {"days": 3}, "days is not known here"),
    "a number out of range": ("list_shares", {"limit": 0}, "limit is out of range"),
    "a share that does not exist": ("get_share", {"short_code": "none"}, "error_code 1"),
    "a share that does not exist to be expired": (
        "expire_share",
        {"short_code": "none"},
        "error_code 1",
    ),
    "an endpoint that does not exist": (
        "rotate_webhook_secret",
        {"webhook_id": "wh_x"},
        "no such webhook endpoint",
    ),
    "fields that are none": (
        "request_secret_from",
        {"title": "t", "public_key": "x", "fields": [{"key": "a"}]},
        "public_key must be base64url of a 65-byte uncompressed P-256 point; fields field 1",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_a_result_that_is_an_error_and_says_what_is_wrong(
    service: RunningService, name: str
) -> None:
    tool, arguments, said = MISTAKES[name]
    with ours(service, service.create_key()) as client, pytest.raises(ToolError) as refused:
        client.call_tool(tool, arguments)
    assert said in str(refused.value)


def test_a_tool_that_is_none_is_an_error_of_the_protocol(service: RunningService) -> None:
    with ours(service, service.create_key()) as client, pytest.raises(ToolError) as refused:
        client.call_tool("read_share")
    assert refused.value.error_code == -32602


def test_another_accounts_endpoints_are_neither_listed_nor_rotated(
    service: RunningService, there: World
) -> None:
    key = service.create_key(account="other")
    with ours(service, key) as client:
        assert client.call_tool("list_webhooks").structured == {"webhooks": []}
        with pytest.raises(ToolError, match="no such webhook endpoint"):
            client.call_tool("rotate_webhook_secret", {"webhook_id": there.webhook_id})


def test_the_tools_and_the_command_line_work_on_the_same_endpoints(
    service: RunningService, there: World, tmp_path_factory: pytest.TempPathFactory
) -> None:
    user = Terminal(tmp_path_factory.mktemp("user")).at(service)
    port = ("--port", str(service.address.port))
    added = user.sealpipe("rehearsal", "webhook", "add", "https://example.com/two", *port)
    assert (added.code, added.out[:6]) == (0, "whsec_")
    assert user.sealpipe("tools", "list").out.count("\n") == 8
    told = user.sealpipe("tools", "call", "list_webhooks", "--output", "json").json["result"][
        "structuredContent"
    ]
    first, second = told["webhooks"]
    assert (first["id"], second["url"]) == (there.webhook_id, "https://example.com/two")
    rotated = user.sealpipe(
        "tools",
        "call",
        "rotate_webhook_secret",
        "--param",
        f"webhook_id=text:{second['id']}",
        "--output",
        "json",
    ).json["result"]["structuredContent"]
    listed = user.sealpipe("rehearsal", "webhook", "list", *port, "--output", "json").json[
        "webhooks"
    ]
    assert [each["both_secrets_until"] is None for each in listed] == [True, False]
    again = user.sealpipe(
        "rehearsal", "webhook", "rotate", second["id"], *port, "--output", "json"
    ).json
    assert len({added.out.strip(), rotated["secret"], again["secret"]}) == 3
    assert user.sealpipe("rehearsal", "webhook", "remove", second["id"], *port).code == 0
    assert user.sealpipe("rehearsal", "webhook", "remove", second["id"], *port).code == 2
    left = user.sealpipe("tools", "call", "list_webhooks", "--output", "json").json["result"][
        "structuredContent"
    ]
    assert [each["id"] for each in left["webhooks"]] == [there.webhook_id]
    for url in ("http://example.com/", "x"):
        refused = user.sealpipe("rehearsal", "webhook", "add", url, *port)
        assert (refused.code, refused.out) == (2, "")


def test_a_new_webhook_secret_stands_in_no_log_of_a_ci_without_leave(
    service: RunningService, tmp_path_factory: pytest.TempPathFactory
) -> None:
    user = Terminal(tmp_path_factory.mktemp("user")).at(service)
    port = ("--port", str(service.address.port))
    user.sealpipe("rehearsal", "webhook", "add", "https://example.com/three", *port)
    rows = user.sealpipe("rehearsal", "webhook", "list", *port, "--output", "json").json["webhooks"]
    words = (
        "tools",
        "call",
        "rotate_webhook_secret",
        "--param",
        f"webhook_id=text:{rows[-1]['id']}",
    )
    refused = user.sealpipe(*words, CI="true")
    assert (refused.code, refused.out) == (2, "")
    assert "--print" in refused.err
    listed = user.sealpipe("rehearsal", "webhook", "list", *port, "--output", "json").json[
        "webhooks"
    ]
    assert listed[-1]["both_secrets_until"] is None
    for form in ("text", "json"):
        done = user.sealpipe(*words, "--print", "--output", form, GITHUB_ACTIONS="true")
        secret = re.search(r"whsec_[A-Za-z0-9+/=_-]+", done.out)
        assert secret is not None
        assert f"::add-mask::{secret[0]}\n" in done.err
    assert user.sealpipe("tools", "call", "list_webhooks", CI="true").code == 0
    user.sealpipe("rehearsal", "webhook", "remove", rows[-1]["id"], *port)
