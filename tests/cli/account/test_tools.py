"""The tools of the MCP endpoint, through a client and the command line, against a fake that is
strict.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from cli.account.hasty import hasty
from cli.fake_mcp import FakeMcp, FakeTool, Form, text
from sealpipe import (
    Client,
    MissingScopeError,
    OutcomeUnknownError,
    ProtocolError,
    RateLimitError,
    ToolError,
)
from sealpipe.api.mcp import REVISIONS, initialize
from sealpipe.minting import mint
from support.fake_web import Reply, drop
from support.terminal import Terminal

HANDSHAKE = ["initialize", "notifications/initialized"]
KEY = mint().credential.reveal()


@pytest.fixture
def client(mcp: FakeMcp) -> Iterator[Client]:
    with Client(
        api_key=KEY, base_url=mcp.base_url, link_base_url="http://127.0.0.1/s", deadline=30
    ) as made:
        yield made


@pytest.fixture
def person(bare: Terminal, mcp: FakeMcp) -> Terminal:
    """A terminal whose service is the fake."""
    bare.environ |= {
        "SEALPIPE_API_KEY": KEY,
        "SEALPIPE_BASE_URL": mcp.base_url,
        "SEALPIPE_LINK_BASE_URL": "http://127.0.0.1/s",
        "SEALPIPE_DEADLINE": "9s",
    }
    return bare


@pytest.mark.parametrize("form", ["object", "stream", "endless stream"])
@pytest.mark.parametrize("sessions", [True, False])
def test_the_tools_are_listed_and_called_whatever_form_the_answers_have(
    client: Client, mcp: FakeMcp, form: Form, *, sessions: bool
) -> None:
    mcp.form, mcp.sessions, mcp.page = form, sessions, 3
    tools = client.list_tools()
    assert [tool.name for tool in tools] == list(mcp.tools)
    assert tools[0].input_schema["properties"] == {"limit": {"type": "integer"}}
    assert client.call_tool("share_stats").text == "3 active\n2 expired"
    assert json.loads(client.call_tool("list_shares", {"limit": 5}).text) == {"limit": 5}
    assert mcp.problems == []
    assert mcp.methods() == [
        *HANDSHAKE,
        "tools/list",
        "tools/list",
        *HANDSHAKE,
        "tools/call",
        *HANDSHAKE,
        "tools/call",
    ]


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_revision_that_we_speak_is_taken_and_named_from_then_on(
    client: Client, mcp: FakeMcp, revision: str
) -> None:
    mcp.revision = revision
    assert client.list_tools()
    asked, *later = mcp.messages
    assert asked.body["params"]["protocolVersion"] == "2025-11-25"
    assert asked.body["params"]["clientInfo"]["name"] == "sealpipe"
    assert {message.headers["mcp-protocol-version"] for message in later} == {revision}


@pytest.mark.parametrize("revision", ["2024-11-05", "2099-01-01", "\x1b[2J"])
def test_a_revision_that_we_do_not_speak_ends_the_talk_and_is_named(
    client: Client, mcp: FakeMcp, revision: str
) -> None:
    mcp.revision = revision
    with pytest.raises(ProtocolError, match="sealpipe supports 2025-11-25") as caught:
        client.list_tools()
    assert caught.value.message.isprintable()
    assert mcp.methods() == ["initialize"]


def test_a_session_that_the_service_ended_is_begun_anew_once(client: Client, mcp: FakeMcp) -> None:
    mcp.queued = {"tools/call": [Reply(404, "gone")]}
    assert client.call_tool("share_stats").text.startswith("3 active")
    assert mcp.methods() == 2 * [*HANDSHAKE, "tools/call"]
    mcp.queued = {"tools/call": [Reply(404, "gone"), Reply(404, "gone")]}
    with pytest.raises(ProtocolError, match="404"):
        client.call_tool("share_stats")


def test_reading_is_repeated_and_a_call_never(client: Client, mcp: FakeMcp) -> None:
    for method in ("initialize", "notifications/initialized", "tools/list"):
        mcp.queued = {method: [drop if method == "tools/list" else Reply(503)]}
        mcp.messages.clear()
        assert client.list_tools()
        assert mcp.methods().count(method) == 2
    for reply in (drop, Reply(503), Reply(500)):
        mcp.queued = {"tools/call": [reply]}
        mcp.messages.clear()
        with pytest.raises(OutcomeUnknownError) as caught:
            client.call_tool("expire_share", {"code": "x"})
        assert mcp.methods().count("tools/call") == 1
        assert "before you call it again" in caught.value.remedy


def test_a_call_that_was_held_back_by_the_rate_limit_is_made_later(
    client: Client, mcp: FakeMcp
) -> None:
    mcp.queued = {"tools/call": [Reply(429, "", {"Retry-After": "1"})]}
    assert client.call_tool("expire_share", {"code": "x"}).text == "expired"
    mcp.queued = {"tools/call": [Reply(429, "", {"Retry-After": "60"})]}
    with pytest.raises(RateLimitError):
        client.call_tool("expire_share", {"code": "x"})


def test_a_missing_scope_is_not_reported_as_a_tool_failure(client: Client, mcp: FakeMcp) -> None:
    mcp.scopes = {"shares:read"}
    assert client.call_tool("get_share", {"code": "x"}).text
    with pytest.raises(MissingScopeError, match="shares:write, which expire_share needs") as caught:
        client.call_tool("expire_share", {"code": "x"})
    assert (caught.value.exit_code, "scope shares:write" in caught.value.remedy) == (4, True)


FAILED = (
    '{"jsonrpc":"2.0","id":%s,"result":{"isError":true,"content":[{"type":"text","text":"%s"}]}}'
)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("no such share", "the tool get_share failed: no such share"),
        (
            "shares:read is not the matter",
            "the tool get_share failed: shares:read is not the matter",
        ),
        (
            "the scope shares:reading of get_share",
            "the tool get_share failed: the scope shares:reading of get_share",
        ),
        ("\\u001b[2J\\n::error::x", "the tool get_share failed: \\x1b[2J\\n::error::x"),
        ("", "the tool get_share failed"),
    ],
)
def test_a_tool_that_fails_is_an_error_with_its_text_escaped(
    client: Client, mcp: FakeMcp, words: str, shown: str
) -> None:
    mcp.queued = {
        "tools/call": [Reply(200, FAILED % (2, words), {"Content-Type": "application/json"})]
    }
    with pytest.raises(ToolError) as caught:
        client.call_tool("get_share", {})
    assert (caught.value.message, caught.value.exit_code) == (shown, 5)


@pytest.mark.parametrize("status", [200, 400, 404])
def test_a_json_rpc_error_has_its_code_whatever_the_status(
    client: Client, mcp: FakeMcp, status: int
) -> None:
    mcp.sessions = False
    body = (
        '{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"Unknown\\u0007 tool","data":{}}}'
    )
    mcp.queued = {"tools/call": [Reply(status, body, {"Content-Type": "application/json"})]}
    with pytest.raises(ToolError, match=r"refused \(-32602\): Unknown\\x07 tool") as caught:
        client.call_tool("nothing", {})
    assert caught.value.error_code == -32602


OURS = '{"jsonrpc":"2.0","id":2,"result":{"content":[]}}'
BROKEN = {
    "nothing": "",
    "not JSON": "<html>",
    "a list": f"[{OURS}]",
    "another's id": OURS.replace('"id":2', '"id":3'),
    "an id that is text": OURS.replace('"id":2', '"id":"2"'),
    "an id that is true": OURS.replace('"id":2', '"id":true'),
    "no id": OURS.replace('"id":2,', ""),
    "another JSON-RPC": OURS.replace("2.0", "1.0"),
    "neither result nor error": '{"jsonrpc":"2.0","id":2}',
    "both": OURS[:-1] + ',"error":{"code":1,"message":"x"}}',
    "a request": OURS[:-1] + ',"method":"ping"}',
    "a result that is text": '{"jsonrpc":"2.0","id":2,"result":"x"}',
    "content that is text": '{"jsonrpc":"2.0","id":2,"result":{"content":"x"}}',
    "isError that is text": '{"jsonrpc":"2.0","id":2,"result":{"content":[],"isError":"no"}}',
    "an error without a code": '{"jsonrpc":"2.0","id":2,"error":{"message":"x"}}',
    "too deep": '{"jsonrpc":"2.0","id":2,"result":' + 100_000 * "[" + "}",
    "a member twice": OURS.replace('"id":2', '"id":2,"id":2'),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_a_protocol_error_is_reported_and_the_call_not_repeated(
    client: Client, mcp: FakeMcp, name: str, kind: str
) -> None:
    body = BROKEN[name] if kind == "application/json" else f"data: {BROKEN[name]}\n\n"
    mcp.queued = {"tools/call": [Reply(200, body, {"Content-Type": kind})]}
    with pytest.raises(ProtocolError):
        client.call_tool("expire_share", {"code": "x"})
    assert mcp.methods().count("tools/call") == 1


@pytest.mark.parametrize(
    ("end", "counts"), [("\n\n", True), ("\n", True), ("\r", True), ("", False)]
)
def test_the_last_event_of_a_stream_counts_if_its_line_is_complete(
    client: Client, mcp: FakeMcp, end: str, *, counts: bool
) -> None:
    mcp.queued = {
        "tools/call": [Reply(200, f"data: {OURS}{end}", {"Content-Type": "text/event-stream"})]
    }
    with nullcontext() if counts else pytest.raises(ProtocolError):
        client.call_tool("expire_share", {"code": "x"})


@pytest.mark.parametrize("session", ["", "a b", "é", "x" * 1025])
def test_a_session_id_that_is_none_is_refused(client: Client, mcp: FakeMcp, session: str) -> None:
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"protocolVersion": "2025-11-25", "capabilities": {}},
    }
    headers = {"Content-Type": "application/json", "Mcp-Session-Id": session}
    mcp.queued = {"initialize": 5 * [Reply(200, json.dumps(hello), headers)]}
    with pytest.raises(ProtocolError, match="session id"):
        hasty(client, initialize())


def test_a_list_without_an_end_is_not_walked_for_ever(client: Client, mcp: FakeMcp) -> None:
    def page(number: int, cursor: str) -> Reply:
        result = {"tools": [{"name": f"tool{number}"}], "nextCursor": cursor}
        body = json.dumps({"jsonrpc": "2.0", "id": number, "result": result})
        return Reply(200, body, {"Content-Type": "application/json"})

    mcp.queued = {"tools/list": [page(2, "a"), page(3, "b"), page(4, "a")]}
    assert [tool.name for tool in client.list_tools()] == ["tool2", "tool3", "tool4"]
    mcp.queued = {"tools/list": [page(number, str(number)) for number in range(2, 300)]}
    with pytest.raises(ProtocolError, match="does not end"):
        client.list_tools()


# -- the command line ---------------------------------------------------------------------------


def test_list_prints_a_line_for_each_tool_and_json_their_arguments(person: Terminal) -> None:
    done = person.sealpipe("tools", "list")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == "list_shares\tDoes it."
    told = person.sealpipe("tools", "list", "--output", "json").json
    assert told["tools"][0]["inputSchema"]["properties"] == {"limit": {"type": "integer"}}


def test_arguments_come_by_reference_and_have_the_types_of_the_schema(
    person: Terminal, mcp: FakeMcp
) -> None:
    kinds = {
        "n": "integer",
        "x": "number",
        "on": "boolean",
        "who": "array",
        "what": "object",
        "code": "string",
    }
    mcp.tools["all"] = FakeTool(
        "shares:read",
        {name: {"type": kind} for name, kind in kinds.items()}
        | {"any": {}, "maybe": {"type": ["null", "integer"]}},
        lambda given: text(json.dumps(given)),
    )
    given = {
        "n": "5",
        "x": "1.5",
        "on": "true",
        "who": '["a"]',
        "what": '{"b": 1}',
        "code": "7",
        "any": "8",
        "maybe": "9",
    }
    person.environ["CODE"] = "7"
    words = [
        word
        for name, value in given.items()
        if name != "code"
        for word in ("--param", f"{name}=text:{value}")
    ]
    done = person.sealpipe(
        "tools",
        "call",
        "all",
        *words,
        "--param",
        "code=env:CODE",
        "--param",
        "no=env:NO?optional=1",
    )
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out) == {
        "n": 5, "x": 1.5, "on": True, "who": ["a"], "what": {"b": 1}, "code": "7", "any": "8",
        "maybe": 9
    }  # fmt: skip
    assert mcp.problems == []


@pytest.mark.parametrize("value", ["five", "1.0", "01", "1_0", "+1", "", " 1", "9" * 19, "é"])
def test_an_argument_that_is_no_whole_number_is_refused_without_showing_it(
    person: Terminal, mcp: FakeMcp, value: str
) -> None:
    person.file("value", value + "?")
    done = person.sealpipe(
        "tools", "call", "list_shares", "--param", "limit=file:value", "--output", "json"
    )
    assert (done.code, done.out) == (2, "")
    assert done.error["message"] == "the argument limit is not a whole number"
    assert "tools/call" not in mcp.methods()


def test_the_text_of_an_answer_is_printed_line_by_line_and_is_never_a_command(
    person: Terminal, mcp: FakeMcp
) -> None:
    hostile = "one\n\x1b[2Jtwo\r\n ::add-mask::x\na ##[error]b ##vso[x] ## c\n"
    mcp.tools["say"] = FakeTool(
        "shares:read",
        {},
        lambda _: [*text(hostile), {"type": "image", "data": "AA==", "mimeType": "image/png"}],
    )
    done = person.sealpipe("tools", "call", "say")
    assert done.out.splitlines() == [
        "one", "\\x1b[2Jtwo\\r", " :\\x3aadd-mask::x", "a #\\x23[error]b #\\x23vso[x] ## c"
    ]  # fmt: skip
    assert done.err == "1 part of the result not shown as text: use --output json\n"
    told = person.sealpipe("tools", "call", "say", "--output", "json").json
    assert told["tool"] == "say"
    assert told["result"]["content"][0] == {"type": "text", "text": hostile}
    assert told["result"]["content"][1]["mimeType"] == "image/png"


def test_structured_content_alone_is_printed_as_json(person: Terminal, mcp: FakeMcp) -> None:
    result = {
        "jsonrpc": "2.0",
        "id": 2,
        "result": {"structuredContent": {"active": 3}, "content": []},
    }
    mcp.queued = {
        "tools/call": [Reply(200, json.dumps(result), {"Content-Type": "application/json"})]
    }
    assert json.loads(person.sealpipe("tools", "call", "share_stats").out) == {"active": 3}


@pytest.mark.parametrize(
    ("scopes", "name", "code", "kind"),
    [
        ({"stats:read"}, "expire_share", 4, "MissingScopeError"),
        ({"stats:read"}, "nothing", 5, "ToolError"),
    ],
)
def test_each_failure_ends_with_its_exit_code(
    person: Terminal, mcp: FakeMcp, scopes: set[str], name: str, code: int, kind: str
) -> None:
    mcp.scopes = scopes
    done = person.sealpipe("tools", "call", name, "--param", "code=text:x", "--output", "json")
    assert (done.code, done.out, done.error["type"]) == (code, "", kind)
