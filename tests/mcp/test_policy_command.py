"""`sealpipe mcp policy`, and a server that is started with its policy."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters

from sealpipe_plugins.audit.verify import verify
from support.commands import SEALPIPE
from support.job import Job

RULES = """
schema = 1
confirm = []
[per_hour]
request_secret = 1
[request]
sinks = ["file:{folder}/*"]
"""
ASK = {"prompts": [{"text": "Password"}]}


@pytest.fixture
def policy(job: Job, tmp_path: Path) -> Path:
    """The file of a policy, where `sealpipe mcp` finds it."""
    file = tmp_path / "config" / "sealpipe" / "mcp.toml"
    file.parent.mkdir(parents=True)
    file.write_text(RULES.format(folder=tmp_path))
    job.terminal.environ["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    return file


def test_init_writes_a_policy_that_allows_nothing_yet(job: Job, tmp_path: Path) -> None:
    job.terminal.environ["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    file = tmp_path / "config" / "sealpipe" / "mcp.toml"
    done = job.run("mcp", "policy", "init")
    assert (done.code, done.out) == (0, "")
    assert f"wrote {file}: it allows nothing yet" in done.err
    assert file.stat().st_mode & 0o777 == 0o600
    assert job.run("mcp", "policy", "test", "check", "{}").out.startswith(
        "check is allowed: without confirmation"
    )
    again = job.run("mcp", "policy", "init")
    assert (again.code, "exists already" in again.err) == (2, True)
    other = job.run(
        "mcp", "policy", "init", "--policy", str(tmp_path / "b.toml"), "--output", "json"
    )
    assert other.json["policy"] == str(tmp_path / "b.toml")


def test_test_says_what_the_server_would_say(job: Job, policy: Path, tmp_path: Path) -> None:
    allowed, refused = ({**ASK, "to": f"file:{folder}/password"} for folder in (tmp_path, "/etc"))
    done = job.run("mcp", "policy", "test", "request_secret", json.dumps(allowed))
    assert (
        done.out
        == "request_secret is allowed: without confirmation, 1 of 1 call left in this hour\n"
    )
    as_json = job.run(
        "mcp", "policy", "test", "request_secret", json.dumps(allowed), "--output", "json"
    )
    answer = {"tool": "request_secret", "allowed": True, "confirmation": False, "left_this_hour": 1}
    assert as_json.json == {"schema": 1, **answer}
    done = job.run("mcp", "policy", "test", "request_secret", json.dumps(refused))
    assert (done.code, done.out) == (2, "")
    assert (
        'the sink "file:/etc/password" is not allowed; sinks in [request] allow '
        f'"file:{tmp_path}/*"'
    ) in done.err
    assert f"ask the owner of {policy} to add" in done.err
    (tmp_path / "arguments.json").write_text(json.dumps(allowed))
    assert (
        job.run("mcp", "policy", "test", "request_secret", f"@{tmp_path}/arguments.json").code == 0
    )
    elsewhere = policy.rename(tmp_path / "elsewhere.toml")
    named = {"SEALPIPE_MCP_POLICY": str(elsewhere)}
    words = ("mcp", "policy", "test", "request_secret", f"@{tmp_path}/arguments.json")
    assert [job.run(*words).code, job.run(*words, **named).code] == [2, 0]
    config = tmp_path / "config" / "sealpipe" / "config.toml"
    config.write_text(f'mcp.policy = "{elsewhere}"\n[policy]\nactions = ["request"]\n')
    assert job.run(*words).code == 0
    config.write_text("policy = 5\n")
    assert job.run(*words).code == 2
    assert not (job.state / "mcp" / "hourly.json").exists()


@pytest.mark.parametrize(
    ("tool", "arguments", "reason"),
    [
        ("request_secret", "canary-of-an-argument", "not a JSON object"),
        ("request_secret", "[1]", "not a JSON object"),
        ("request_secret", "[" * 50_000, "not a JSON object"),
        ("request_secret", "@/does/not/exist", "cannot be read"),
        ("request_secret", '{"canary": 1}', "a member that is not known"),
        ("request_secret", '{"to": "file:x", "prompts": []}', "prompts is not a list"),
        ("share_secret", "{}", "the policy has no [share]"),
        ("no-such-tool", "{}", "there is no such tool"),
        ("check", '{"x": 1}', "a member that is not known"),
    ],
)
def test_test_refuses_what_is_no_call(
    job: Job, policy: Path, tool: str, arguments: str, reason: str
) -> None:
    done = job.run("mcp", "policy", "test", tool, arguments)
    assert (done.code, done.out) == (2, "")
    assert reason in done.err
    assert "canary" not in done.err
    assert policy.exists()


def test_a_policy_with_a_mistake_stops_the_server(job: Job, policy: Path) -> None:
    policy.write_text("schema = 1\n[request]\nsink = []\n")
    for words in (("mcp",), ("mcp", "policy", "test", "check", "{}")):
        done = job.run(*words)
        assert (done.code, "did you mean sinks?" in done.err) == (2, True)


def serve(job: Job, work: Callable[[Any, Client], Any], *words: str) -> Any:
    """Start `sealpipe mcp`, work with the official client, and end it."""
    program, *arguments = (*SEALPIPE, "mcp", *words)
    client = Client(
        StdioServerParameters(command=program, args=arguments, env=job.terminal.with_environ({}))
    )
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client) as entered:
        return work(portal, entered)


def test_a_server_that_is_started_again_remembers_the_hour(
    job: Job, policy: Path, tmp_path: Path
) -> None:
    def ask(portal: Any, client: Client) -> Any:
        names = [tool.name for tool in portal.call(client.list_tools).tools]
        assert set(names) >= {"request_secret", "wait_for_submission", "collect_secret", "check"}
        assert {"share_secret", "run_with_secrets"}.isdisjoint(names)
        arguments = {**ASK, "to": f"file:{tmp_path}/password"}
        return portal.call(lambda: client.call_tool("request_secret", arguments)).structured_content

    assert "code" in serve(job, ask)
    error = serve(job, ask, "--policy", str(policy))["error"]
    assert (error["kind"], "allows 1 call an hour" in error["message"]) == ("PolicyError", True)
    assert "call it again after" in error["next"]
    log = job.state / "mcp" / "audit.jsonl"
    assert verify(log, None).findings == []
    events = [
        (line["event"], line["outcome"]) for line in map(json.loads, log.read_text().splitlines())
    ]
    assert events == [
        ("request", "sending"),
        ("request", "created"),
        ("mcp", "done"),
        ("mcp", "refused"),
    ]
