"""Ports of this machine: one where nobody listens, and free ones.

A port that a test fixes may be taken.
"""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress
from functools import cache


@cache
def _silent() -> socket.socket:
    """Bound and never listening: whoever connects is refused, and nobody else gets the port as long
    as this runs.
    """
    held = socket.socket()
    held.bind(("127.0.0.1", 0))
    return held


def silent_port() -> int:
    """A port where nobody listens: each connection is refused at once."""
    return int(_silent().getsockname()[1])


def free_port() -> int:
    """A port for a server that is started at once.

    The system gives none of these to a connection or to a server that asks for any port, so that
    only another call of this function could take it before the server does.
    """
    while True:
        port = 10_000 + secrets.randbelow(22_768)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
