"""`sealpipe mcp` as a client starts it: one process, JSON on stdin and stdout, and nothing of a
secret anywhere.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError

from support.commands import SEALPIPE
from support.faults import holds
from support.faulty import Faulty
from support.job import Job, client_of
from support.leaks import Detector
from support.terminal import PATIENCE

SECRET = "canary-of-stdio/42"
PING = {"jsonrpc": "2.0", "id": 7, "method": "ping"}


@pytest.fixture
def policy(tmp_path: Path) -> str:
    """A policy that lets an assistant ask for files in the test's folder."""
    return f'schema = 1\n[request]\nsinks = ["file:{tmp_path}/*"]\n'


def find_secrets(job: Job) -> Detector:
    """Everything that an assistant must not see."""
    _, auth, custody = job.api_key.split(".")
    return Detector({"value": SECRET.encode(), "auth": auth.encode(), "custody": custody.encode()})


def test_the_transcript_holds_no_secret(start: Any, policy: str, job: Job, tmp_path: Path) -> None:
    assistant = start(policy)
    assert [tool.name for tool in assistant.tools()][:3] == [
        "request_secret",
        "wait_for_submission",
        "collect_secret",
    ]
    target = f"file:{tmp_path}/password"
    made = assistant.call("request_secret", prompts=[{"text": "Password"}], to=target)
    job.service.submitter().submit(made["link"], {"Password": SECRET})
    assert assistant.call("wait_for_submission", code=made["code"])["state"] == "submitted"
    assert assistant.call("collect_secret", code=made["code"])["request"] == "expired"
    assert (
        assistant.fail("request_secret", prompts=[{"text": "x"}], to="env:X")["kind"]
        == "PolicyError"
    )
    assert (tmp_path / "password").read_text() == SECRET
    (tmp_path / "password").unlink()
    left = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert find_secrets(job).find("".join(assistant.received).encode() + left) == set()
    assert (tmp_path / "stderr").read_text() == ""


def test_a_server_that_is_killed_loses_and_doubles_nothing(
    start: Any, policy: str, job: Job, tmp_path: Path, proxied: Callable[..., Faulty]
) -> None:
    wanted = {"prompts": [{"text": "Password"}], "to": f"file:{tmp_path}/password"}
    server = proxied(holds)
    first = start(policy, "auto", SEALPIPE_BASE_URL=server.base_url)
    call = first.begin("request_secret", **wanted)
    assert server.committed.wait(PATIENCE)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    server.released.set()
    assert call.exception(PATIENCE) is not None
    second = start(policy, "auto", SEALPIPE_BASE_URL=server.base_url)
    made = second.call("request_secret", **wanted)  # the killed one is finished first
    codes = {row["code"] for row in second.call("list")["made"]}
    with client_of(job) as client:
        assert codes == {each.short_code for each in client.iter_requests()}
    assert len(codes) == 2
    assert made["code"] in codes
    assert job.entries() == []


def test_sigterm_ends_a_server_at_once(start: Any, policy: str, tmp_path: Path) -> None:
    assistant = start(policy)
    assistant.tools()
    server = os.pidfd_open(int((tmp_path / "pid").read_text()))
    signal.pidfd_send_signal(server, signal.SIGTERM)
    ended, _, _ = select.select([server], [], [], PATIENCE)  # readable once the process has ended
    os.close(server)
    assert ended
    with pytest.raises(MCPError):
        assistant.tools()
    assert (tmp_path / "stderr").read_text() == "sealpipe: interrupted\n"


def test_a_line_that_is_no_message_gets_an_error_and_the_next_one_is_answered(job: Job) -> None:
    lines = {
        '{"jsonrpc": "2.0", "id": 1, canary': -32700,
        "canary": -32700,
        "[" * 100_000: -32700,
        "": None,
        " \t": None,
        "{}": -32600,
        '["canary"]': -32600,
        '{"jsonrpc": "1.0", "id": "canary", "method": "ping"}': -32600,
        **{
            f'{{"jsonrpc": "2.0", "id": {wrong}, "method": "ping"}}': -32600
            for wrong in ('{"canary": 1}', '["canary"]', "null", "true", "1.5")
        },
    }
    text = "".join(f"{line}\n" for line in lines) + json.dumps(PING) + "\n"
    codes = [code for code in lines.values() if code]
    with subprocess.Popen(
        [*SEALPIPE, "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=job.terminal.with_environ({}),
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(text.encode())
        server.stdin.flush()  # and stays open: at its end, the server answers nothing more
        received = [server.stdout.readline() for _ in (*codes, PING)]
        rest, said = server.communicate(timeout=PATIENCE)
    answers = [json.loads(line) for line in received]
    assert [each["id"] for each in answers] == [None] * len(codes) + [PING["id"]]
    assert [each["error"]["code"] for each in answers[:-1]] == codes
    assert b"canary" not in b"".join(received) + said
    assert (rest, server.returncode) == (b"", 0)


def test_a_huge_message_is_no_message_and_takes_no_memory(job: Job) -> None:
    environ = job.terminal.with_environ({})
    with subprocess.Popen(
        [*SEALPIPE, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for _ in range(64):
            server.stdin.write(b"x" * 1024 * 1024)
        server.stdin.write(f"\n{json.dumps(PING)}\n".encode())
        server.stdin.flush()
        refused = json.loads(server.stdout.readline())
        assert (refused["id"], refused["error"]["code"]) == (None, -32600)
        assert json.loads(server.stdout.readline())["id"] == PING["id"]
        (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{server.pid}/status").read_text())
        server.stdin.close()
    assert int(peak) < 150_000
    assert server.returncode == 0
