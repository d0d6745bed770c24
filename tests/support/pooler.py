"""pgbouncer in transaction mode: a connection to PostgreSQL for each transaction, of few."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.parts import program

CONNECTIONS = 3
_PORT = 6432
_SETTINGS = """
[databases]
* = host={server} user=tests
[pgbouncer]
pool_mode = transaction
default_pool_size = {connections}
min_pool_size = {connections}
; each transaction gets another connection than the one before, if there are two
server_round_robin = 1
unix_socket_dir = {folder}
listen_port = {port}
listen_addr =
auth_type = any
{more}
"""


@contextmanager
def pooled(address: str, connections: int = CONNECTIONS, more: str = "") -> Iterator[str]:
    """A database's address, through a pooler of so many connections; `more` are settings of it."""
    server = address.partition("host=")[2].partition("&")[0]
    with tempfile.TemporaryDirectory(prefix="pgb-", ignore_cleanup_errors=True) as folder:
        settings, socket = Path(folder) / "settings.ini", Path(folder) / f".s.PGSQL.{_PORT}"
        settings.write_text(
            _SETTINGS.format(
                server=server, folder=folder, connections=connections, port=_PORT, more=more
            )
        )
        # It refuses to run as root.
        user: dict[str, Any] = {}
        if os.geteuid() == 0:
            user = {"user": "postgres", "group": "postgres", "extra_groups": []}
            for path in (folder, settings):
                shutil.chown(path, "postgres", "postgres")
        with subprocess.Popen(
            [program("pgbouncer"), "-q", str(settings)], stderr=subprocess.DEVNULL, **user
        ) as pooler:
            try:
                for _ in range(300):
                    if socket.exists():
                        break
                    assert pooler.poll() is None, "pgbouncer has ended"
                    time.sleep(0.05)
                yield address.replace(f"host={server}", f"host={folder}&port={_PORT}")
            finally:
                pooler.terminate()
