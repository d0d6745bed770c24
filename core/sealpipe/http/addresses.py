"""From a name to a connection, in a time that is the caller's: the system's own look-up knows no timeout."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any

Found = list[tuple[Any, ...]]


def resolved(host: str, port: int, timeout: float | None) -> Found:
    """What a name stands for, as `socket.getaddrinfo` has it. Raises OSError, TimeoutError after `timeout` seconds."""
    if timeout is None or host == "localhost" or ":" in host or host.replace(".", "").isdigit():
        return _asked(host, port)  # nobody is asked for those
    answers: list[Found | BaseException] = []

    def ask() -> None:
        try:
            answers.append(_asked(host, port))
        except BaseException as error:  # noqa: BLE001 - it is raised below, in the thread that asked
            answers.append(error)

    # Of its own, and left behind where it is late: nothing ends a look-up that hangs.
    asking = threading.Thread(target=ask, name="sealpipe-name", daemon=True)
    asking.start()
    asking.join(timeout)
    if not answers:
        raise TimeoutError("the name could not be looked up in time")
    if isinstance(answers[0], BaseException):
        raise answers[0]
    return answers[0]


def reached(host: str, port: int, left: Callable[[], float]) -> socket.socket:
    """A TCP connection to the first address that takes one. `left` tells the seconds that the next step may take.

    Raises OSError, and TimeoutError where `left` does.
    """
    failure = OSError("the name has no address")
    for family, kind, protocol, _, address in resolved(host, port, left()):
        made = socket.socket(family, kind, protocol)
        try:
            made.settimeout(left())
            made.connect(address)
            return made
        except OSError as error:
            made.close()
            failure = error
        except BaseException:
            made.close()
            raise
    raise failure


def _asked(host: str, port: int) -> Found:
    return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
