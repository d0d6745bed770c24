"""Asks an MCP server on stdin and stdout for its tools: python asking_tools.py PORT IDLE COMMAND
...

With a PORT other than 0 the server is one over HTTP, and it waits until that takes connections.
Then it leaves the server alone for IDLE seconds, and prints how often that woke and how much CPU
time it took.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

MESSAGES = (
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "b", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list"},
)


def count(process: int) -> tuple[int, int]:
    """How often all threads of a process have given up the CPU, and their CPU time in
    nanoseconds.
    """
    threads = list(Path(f"/proc/{process}/task").iterdir())
    switches = [
        line
        for each in threads
        for line in (each / "status").read_text().splitlines()
        if "ctxt" in line
    ]
    spent = [int((each / "schedstat").read_text().split()[0]) for each in threads]
    return sum(int(line.split()[1]) for line in switches if line.startswith("voluntary")), sum(
        spent
    )


def ask(server: subprocess.Popen[bytes]) -> None:
    """Ask for the tools, and wait for the answer."""
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(
        b"".join(json.dumps({"jsonrpc": "2.0", **each}).encode() + b"\n" for each in MESSAGES)
    )
    server.stdin.flush()
    while json.loads(server.stdout.readline()).get("id") != 2:
        pass


def connect(port: int) -> None:
    """Wait until the port takes connections."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.05)
    raise TimeoutError("the server takes no connections")


def main() -> None:
    port, idle, *command = sys.argv[1:]
    pipes = {} if int(port) else {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as server:
        connect(int(port)) if int(port) else ask(server)
        if float(idle):
            time.sleep(1)  # what a start leaves behind, such as a clean-up, is done
            before = count(server.pid)
            time.sleep(float(idle))
            print(
                json.dumps(
                    [after - once for once, after in zip(before, count(server.pid), strict=True)]
                )
            )
        if int(port):
            server.terminate()


main()
