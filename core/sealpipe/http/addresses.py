"""Host names to connections, within the caller's time (the system's look-up has no timeout), and which are refused."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any

from sealpipe.errors import NotConfiguredError
from sealpipe.loopback import in_clear

Addresses = list[tuple[Any, ...]]


def resolve_host(host: str, port: int, timeout: float | None) -> Addresses:
    """Look up a name, as `socket.getaddrinfo` does. Raises OSError, TimeoutError after `timeout` seconds."""
    if timeout is None or host == "localhost" or ":" in host or host.replace(".", "").isdigit():
        return _look_up(host, port)  # answered without the network
    answers: list[Addresses | BaseException] = []

    def ask() -> None:
        try:
            answers.append(_look_up(host, port))
        except BaseException as error:  # noqa: BLE001 - it is raised below, in the thread that asked
            answers.append(error)

    # A thread of its own, abandoned on timeout: nothing ends a look-up that hangs.
    asking = threading.Thread(target=ask, name="sealpipe-name", daemon=True)
    asking.start()
    asking.join(timeout)
    if not answers:
        raise TimeoutError("the name could not be looked up in time")
    if isinstance(answers[0], BaseException):
        raise answers[0]
    return answers[0]


def connect_host(host: str, port: int, left: Callable[[], float]) -> socket.socket:
    """Connect over TCP to the first address that accepts. `left` returns the seconds that the next step may take.

    Raises OSError, and TimeoutError where `left` does.
    """
    failure = OSError("the name has no address")
    for family, kind, protocol, _, address in resolve_host(host, port, left()):
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


def _look_up(host: str, port: int) -> Addresses:
    return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))


def refuse_cleartext(scheme: str, host: str) -> None:
    """Refuse a plugin's connection over which others could read what it sends: NotConfiguredError.

    The last check, before the first byte; backends check before, and name the setting.
    """
    if in_clear(scheme, host):
        raise NotConfiguredError(
            f"the address {scheme}://{host} would take secrets to another machine in clear: nothing was sent",
            remedy="let it begin with https://; http:// is for this machine itself only",
        )


def not_loopback(host: str, address: str) -> str:
    """Say why there is no connection where http:// was allowed for this machine's name."""
    return f"the name {host} leads to another machine ({address}), and http:// is for this machine only"
