"""Asks the service that a cloud offers its machines.

Without TLS and without a proxy, as the cloud's own tools do.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection
from typing import Final, NamedTuple

from sealpipe_plugins.http_api import BODY_LIMIT

DEADLINE: Final = 10.0
"""Seconds for a whole response.

On other machines anybody in the network may have the address, and send for ever.
"""


class MachineReply(NamedTuple):
    """A response; the names of its headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def ask_machine(
    address: str,
    method: str,
    target: str,
    body: bytes | None,
    headers: Mapping[str, str],
    *,
    timeout: float,
) -> MachineReply:
    """Send one request. `timeout` is in seconds, for each step.

    Raises OSError, HTTPException, ValueError.
    """
    connection = HTTPConnection(address, timeout=timeout)
    connection.connect()
    timer = threading.Timer(DEADLINE, _shut_down, [connection.sock])
    timer.daemon = True
    timer.start()
    try:
        connection.request(method, target, body, dict(headers))
        response = connection.getresponse()
        lower = {name.lower(): value for name, value in response.headers.items()}
        return MachineReply(response.status, lower, response.read(BODY_LIMIT))
    finally:
        timer.cancel()
        connection.close()


def _shut_down(line: socket.socket) -> None:
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)
