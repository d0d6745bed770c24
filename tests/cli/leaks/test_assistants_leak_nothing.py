"""An assistant's server over stdio: what is submitted stands in its store and in no other byte.

As in `test_a_share_leaks_nothing`: real processes under strace, client and server, and every byte
that leaves them. So the transcript of both directions is among them. Nor does the credential stand
anywhere but in its header.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import pytest

from cli.leaks.canaries import canary
from sealpipe_rehearsal.running_service import RunningService
from support.leaks import Detector
from support.strace import watch
from support.terminal import Terminal

CLIENT = """
import asyncio, json, os, sys
from mcp import Client
from mcp.client.stdio import StdioServerParameters

async def main():
    words = ["-m", "sealpipe", "mcp", *sys.argv[1:]]
    server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
    async with Client(server) as client:
        for line in sys.stdin:
            tool, arguments = json.loads(line)
            result = await client.call_tool(tool, arguments)
            print(json.dumps(result.structured_content))

asyncio.run(main())
"""


def calls(*rows: tuple[str, dict[str, Any]]) -> bytes:
    """What the client reads: one call a line."""
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


@pytest.mark.parametrize("words", [(), ("--debug",)], ids=["", "debug"])
def test_a_submission_stands_in_its_store_only(
    user: Terminal, service: RunningService, words: tuple[str, ...]
) -> None:
    secret, key = canary("submitted"), user.environ.pop("SEALPIPE_API_KEY")
    user.file("key", key).chmod(0o600)
    policy = user.file("mcp.toml", f'schema = 1\n[request]\nsinks = ["file:{user.here}/*"]\n')
    policy.chmod(0o600)
    user.environ |= {
        "SEALPIPE_API_KEY_FILE": str(user.here / "key"),
        "SEALPIPE_MCP_POLICY": str(policy),
    }
    client, target = [sys.executable, "-c", CLIENT, *words], f"file:{user.here}/password"
    wanted = {"prompts": [{"text": "Password"}], "to": target}
    asked = user.run(client, stdin=calls(("request_secret", wanted)))
    made = json.loads(asked.out)
    service.submitter().submit(made["link"], {"Password": secret})
    code = {"code": made["code"]}
    refused = ("request_secret", {**wanted, "to": "env:NOT_ALLOWED"})
    again = [
        ("wait_for_submission", code),
        ("collect_secret", code),
        ("collect_secret", code),
        ("list", {}),
        refused,
    ]
    watched = watch(user, client, stdin=calls(*again))
    rows = [json.loads(line) for line in watched.done.out.splitlines()]
    assert [row.get("request") for row in rows] == [None, "expired", "expired", None, None], (
        watched.done
    )
    assert (user.here / "password").read_text() == secret
    _, auth, custody = key.split(".")
    detector = Detector(
        {"value": secret.encode(), "auth": auth.encode(), "custody": custody.encode()}
    )
    header = re.compile(
        rb"\r\nauthorization: " + re.escape(f"Bearer {key.rpartition('.')[0]}".encode()),
        re.IGNORECASE,
    )
    found, stored, told = set(), set(), set()
    for place, data in watched.places():
        told |= {place} if made["code"].encode() in data else set()
        if "work/password" in place or (place.startswith("work/") and data == secret.encode()):
            stored |= detector.find(data)  # where it belongs, with its name and before
            continue
        found |= detector.find(header.sub(b"", data) if place.startswith("TCP:") else data, place)
    assert found == set()
    assert {each.secret for each in stored} == {"value"}
    # The transcript was looked at.
    assert any("pipe" in place or "socket" in place for place in told), told
    assert all(mode & 0o077 == 0 for _, mode in watched.created), watched.created
