"""smtplib on a connection of the shared way out: every line of the conversation keeps the command's deadline."""

from __future__ import annotations

import re
import smtplib
import socket
from typing import IO, Any, Final

from sealpipe.plugin import Network, NotConfiguredError, is_loopback

_LINES: Final = 1000
"""Of a conversation: more than any server has to say. One that never stops would fill the memory."""


class Line(smtplib.SMTP):
    """A conversation over a socket of `network`, with TLS from its first byte where `tls`. `timeout` is for a step.

    With `here` it is for this machine only: NotConfiguredError where the host's name has led to another, before a byte.
    """

    def __init__(self, network: Network, host: str, port: int, *, tls: bool, timeout: float, here: bool) -> None:
        self._network = network
        self._scheme = "tls" if tls else "tcp"
        self._here = here
        self._own_name = ""
        # A name is given, whichever: smtplib would look for its own, and that look-up knows no deadline.
        super().__init__(host, port, "localhost", timeout)
        self.local_hostname = self._own_name

    def connect(self, host: str = "localhost", port: int = 0, source_address: Any = None) -> tuple[int, bytes]:  # noqa: ARG002 - its signature
        """As smtplib's own, by another socket."""
        place = f"[{host}]" if ":" in host else host
        self.sock = line = self._network.connect(f"{self._scheme}://{place}:{port}", timeout=self.timeout)
        self.file, self._own_name = None, _name(line)
        address = str(line.getpeername()[0])
        if self._here and not is_loopback(address):
            self.close()
            raise NotConfiguredError(
                f"the name {host} leads to another machine ({address}): mail would go there in clear",
                remedy="use starttls or tls, or mend what says where that name leads (/etc/hosts)",
            )
        return self.getreply()

    def getreply(self) -> tuple[int, bytes]:
        """As smtplib's own, of a server that comes to an end."""
        if self.file is None and self.sock is not None:
            self.file = _Few(self.sock.makefile("rb"))
        return super().getreply()


class _Few:
    """So many lines of a server, and no more."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._left = _LINES

    def readline(self, limit: int) -> bytes:
        self._left -= 1
        if self._left < 0:
            raise OSError("more lines than any server has to say")
        return self._file.readline(limit)

    def close(self) -> None:
        self._file.close()


def _name(line: socket.socket) -> str:
    """How we are called: this machine's name where it has a domain, else its address (RFC 5321, 4.1.4)."""
    name = socket.gethostname()
    if re.fullmatch(r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+", name) and len(name) < 256:
        return name
    address = str(line.getsockname()[0]).partition("%")[0]
    return f"[IPv6:{address}]" if ":" in address else f"[{address}]"
