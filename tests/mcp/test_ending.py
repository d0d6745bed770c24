"""However `sealpipe mcp` ends, or its client, the commands that it runs end too; and what it wrote
shows no secret.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from support.commands import SEALPIPE
from support.job import Job
from support.leaks import Detector
from support.terminal import PATIENCE, ends

POLICY = """
schema = 1
confirm = []
[run]
sources = ["env:DB_PASSWORD"]
variables = ["TOKEN"]
commands = [["sh", "-c", "**"]]
"""
SCRIPT = (
    "tr '\\0' '\\n' < /proc/self/environ > {here}/environ; echo $$ > {here}/new; mv {here}/new "
    "{here}/pid; sleep 600"
)


@pytest.mark.parametrize("end", ["client", "SIGTERM", "SIGINT", "SIGHUP"])
def test_no_command_outlives_the_server(job: Job, tmp_path: Path, end: str) -> None:
    policy = job.terminal.file("mcp.toml", POLICY)
    environ = job.terminal.with_environ({"SEALPIPE_MCP_POLICY": str(policy)})
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(
        [*SEALPIPE, "mcp"], env=environ, start_new_session=True, **pipes
    ) as server:  # type: ignore[call-overload]
        arguments = {
            "command": ["sh", "-c", SCRIPT.format(here=tmp_path)],
            "environment": {"TOKEN": "env:DB_PASSWORD"},
            "seconds": 600,
        }
        for message in (
            initialize(),
            {"method": "notifications/initialized"},
            call("run_with_secrets", arguments),
        ):
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            server.stdin.flush()
        waits_for((tmp_path / "pid").exists)
        command = int((tmp_path / "pid").read_text())
        if end == "client":
            server.stdin.close()
        else:
            server.send_signal(getattr(signal, end))
        out, err = server.stdout.read(), server.stderr.read()
        server.wait(PATIENCE)
    assert ends(command)
    detector = Detector({"value": job.secret.encode(), "key": job.api_key.encode()})
    assert detector.find(out + err) == set()
    given = (tmp_path / "environ").read_bytes()
    assert {each.secret for each in detector.find(given)} == {"value"}
    assert b"SEALPIPE" not in given


def initialize() -> dict[str, Any]:
    client = {"name": "helper", "version": "1"}
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    return {"id": 1, "method": "initialize", "params": params}


def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"id": 2, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def waits_for(condition: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
