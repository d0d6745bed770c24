"""Connections to one Vault, kept for the next call: as many as there are threads that call."""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Callable, Mapping
from http.client import HTTPException, RemoteDisconnected
from typing import Final

from sealpipe.plugin import NotConfiguredError, PluginError, UnavailableError
from sealpipe_plugins.http_errors import connect_error
from sealpipe_plugins.vault.http11 import Answer, Line

_PAUSE: Final = 0.2
"""Seconds in which a Vault that could not be reached is not tried again: the calls that wait for it fail at once."""


class Lines:
    """`connect` makes a connection; `host` is Vault's place, and `prefix` what its address has behind the host.

    Safe to use from several threads.
    """

    def __init__(self, connect: Callable[[], socket.socket], host: str, prefix: str = "") -> None:
        self._connect = connect
        self._host = host
        self._prefix = prefix
        self._free: deque[Line] = deque()
        self._down: tuple[float, PluginError] | None = None

    def send(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        """One request. Raises UnavailableError or NotConfiguredError where no answer came."""
        if self._down is not None and time.monotonic() - self._down[0] < _PAUSE:
            raise again(self._down[1])
        try:
            return self._exchange(method, self._prefix + target, {"Host": self._host, **headers}, body)
        except (OSError, HTTPException) as error:
            failure = self._failure(error)
        except ValueError:
            # Before anything is sent: a namespace, or a token, that would break out of its header.
            raise NotConfiguredError(
                "a namespace or a token has characters that none can have", remedy="check both"
            ) from None
        self._down = time.monotonic(), failure
        raise failure

    def close(self) -> None:
        """Hang up. What is sent afterwards opens new connections."""
        while self._free:
            self._free.pop().close()

    __del__ = close  # for a run that ends without saying so

    def forget(self) -> None:
        """Let the next call try, however little time has passed since the last one failed."""
        self._down = None

    def hurry(self, seconds: float) -> None:
        """From now on no step of the connections that are there takes longer."""
        for line in self._free:
            line.hurry(seconds)

    def _exchange(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        line = self._line()
        try:
            answer = line.ask(method, target, headers, body)
        except (RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            line.close()
            if not line.used or method != "GET":
                raise
            line = Line(self._connect())  # it had been hung up while nobody looked
            try:
                answer = line.ask(method, target, headers, body)
            except BaseException:
                line.close()
                raise
        except BaseException:
            line.close()
            raise
        if line.open:
            self._free.append(line)
        else:
            line.close()
        return answer

    def _line(self) -> Line:
        try:
            return self._free.pop()
        except IndexError:
            return Line(self._connect())

    def _failure(self, error: Exception) -> PluginError:
        at = f"Vault at {self._host}"
        if isinstance(error, TimeoutError):
            return UnavailableError(f"{at} did not answer in time", remedy="check the address; the setting timeout")
        if isinstance(error, HTTPException | ConnectionResetError | BrokenPipeError):
            return UnavailableError(
                f"{at} broke off the connection", remedy="check the address, and what stands before it"
            )
        failure = connect_error(error, "Vault", self._host)
        if "SEALPIPE_CA_FILE" in failure.remedy:
            failure.remedy = "name the CA's file in VAULT_CACERT (the setting ca_file), or in SEALPIPE_CA_FILE"
        return failure


def again(error: PluginError) -> PluginError:
    """The same error for another call: each gets a locator of its own."""
    return type(error)(error.message, remedy=error.remedy)
