"""A real database whose users OpenBao makes: Debian's redis-server."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.parts import program
from support.ports import free_port

PASSWORD = "password-of-the-database"


@contextmanager
def redis(folder: Path) -> Iterator[int]:
    """Run one that holds all in memory; its port. The user `default` has the password."""
    port = free_port()
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--requirepass", PASSWORD]
    process = subprocess.Popen(
        [program("redis-server"), *options],
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={"PATH": os.defpath},
    )
    assert process.stdout is not None
    assert any("eady to accept connections" in line for line in process.stdout)
    try:
        yield port
    finally:
        process.terminate()
        process.communicate(timeout=30)


def logs_in(port: int, user: str, password: str) -> bool:
    """Whether the database knows a user."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as line:
        line.sendall(f"AUTH {user} {password}\r\n".encode())
        return line.recv(100) == b"+OK\r\n"
