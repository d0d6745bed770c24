"""What a server writes, sends, starts and leaves behind while it serves: no secret, but where it
belongs.
"""

from __future__ import annotations

import re
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from support.commands import SEALPIPE
from support.job import Job
from support.leaks import Detector
from support.mailbox import PASSWORD, Mailbox
from support.ports import free_port
from support.strace import Watched, watch

POLICY = """
schema = 1
confirm = []
[request]
sinks = ["file:{here}/*"]
[share]
sources = ["env:DB_PASSWORD"]
recipients = ["email:*@example.com"]
[run]
sources = ["env:DB_PASSWORD"]
variables = ["PGPASSWORD"]
commands = [["true"], ["no-such-program"]]
"""
SUBMITTED = 'cänary-from-a-person "x"'
SHARE: dict[str, Any] = {
    "fields": [{"reference": "env:DB_PASSWORD"}],
    "to": "email:ann@example.com",
}
RUN: dict[str, Any] = {"command": ["true"], "environment": {"PGPASSWORD": "env:DB_PASSWORD"}}


@pytest.mark.parametrize("words", [(), ("--debug",)], ids=["", "debug"])
def test_each_secret_goes_where_it_belongs_and_nowhere_else(
    job: Job, over_http: Any, connect_to: Any, tmp_path: Path, words: tuple[str, ...]
) -> None:
    user, port = job.terminal, free_port()
    state, target = user.home / "state", user.here / "password"
    environ = {
        "SEALPIPE_STATE_DIR": str(state),
        "SEALPIPE_MCP_POLICY": str(user.file("mcp.toml", "")),
    }
    user.file("mcp.toml", POLICY.replace("{here}", str(user.here)))
    received: list[str] = []

    def call_every_tool() -> None:
        token = wait_for_token(state / "mcp/http-token", port)
        assistant = connect_to(over_http(f"http://127.0.0.1:{port}/mcp", token), "auto")
        assistant.call("check")
        asked = assistant.call(
            "request_secret", prompts=[{"text": "Password"}], to=f"file:{target}"
        )
        job.service.submitter().submit(asked["link"], {"Password": SUBMITTED})
        assistant.call("wait_for_submission", code=asked["code"])
        assistant.call("collect_secret", code=asked["code"])
        shared = assistant.call("share_secret", **SHARE)
        assistant.call("run_with_secrets", **RUN)
        assistant.fail("run_with_secrets", **{**RUN, "command": ["no-such-program"]})
        assistant.fail(
            "run_with_secrets", **{**RUN, "environment": {"PGPASSWORD": "env:SEALPIPE_API_KEY"}}
        )
        assistant.call("list")
        assistant.call("status", code=shared["code"])
        assistant.call("expire", code=shared["code"])
        received.extend(assistant.received)

    with Mailbox(tmp_path) as mailbox:
        command = [*SEALPIPE, "mcp", "--http", f"127.0.0.1:{port}", *words]
        seen = watch(
            user, command, environ={**environ, **mailbox.environ()}, interrupt=call_every_tool
        )
        (mail,) = mailbox.received
    assert seen.done.code == 0, seen.done
    (link,) = re.findall(r"http://\S+#(\S+)", mail.body())
    token = (state / "mcp/http-token").read_text().strip()
    secrets = {
        "link": link,
        "theirs": SUBMITTED,
        "ours": job.secret,
        "relay": PASSWORD,
        "token": token,
    }
    secrets |= dict(zip(("key", "custody"), job.api_key.split(".")[1:], strict=True))
    detector = Detector({name: value.encode() for name, value in secrets.items()})
    assert target.read_text() == SUBMITTED
    assert [program[0].rpartition(b"/")[2] for program in seen.executed] == [b"true"]
    assert find(detector, seen) == {
        ("theirs", "work/password"),
        ("theirs", "work/#"),
        ("key", "TCP"),
        ("token", "home/state/mcp/http-token"),
        ("token", "home/state/mcp/#"),
        ("ours", "execve"),
    }
    assert detector.find("".join(received).encode()) == set()
    assert {mode for name, mode in seen.created if str(state) in name} <= {0o600}


def wait_for_token(file: Path, port: int) -> str:
    """Wait until the server takes connections, and return its token."""
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
            return file.read_text().strip()
        time.sleep(0.1)
    raise TimeoutError(file)


def find(detector: Detector, seen: Watched) -> set[tuple[str, str]]:
    """Which secret stands where.

    Peers of connections and numbers of nameless files are left out.
    """
    places = [
        (re.sub(r"^left in |(?<=^TCP).*|(?<=#)\d+", "", name), data) for name, data in seen.places()
    ]
    return {(each.secret, name) for name, data in places for each in detector.find(data)}
