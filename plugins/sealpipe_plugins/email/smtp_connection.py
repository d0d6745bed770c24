"""smtplib over a socket of the shared network, so that each line obeys the command's deadline."""

from __future__ import annotations

import re
import smtplib
import socket
from typing import IO, Any, Final

from sealpipe.plugin import Network, NotConfiguredError, is_loopback

_MAX_LINES: Final = 1000
"""Maximum lines of a session, so that an endless response cannot fill the memory."""


class SmtpConnection(smtplib.SMTP):
    """An SMTP connection over a socket of `network`, with TLS from its first byte if `tls`.

    `timeout` is in seconds.

    With `must_be_loopback`, raises NotConfiguredError before anything is sent if the host resolves
    to another machine.
    """

    def __init__(
        self,
        network: Network,
        host: str,
        port: int,
        *,
        tls: bool,
        timeout: float,
        must_be_loopback: bool,
    ) -> None:
        self._network = network
        self._scheme = "tls" if tls else "tcp"
        self._must_be_loopback = must_be_loopback
        self._own_name = ""
        # Without a name, smtplib would look one up, ignoring the deadline.
        super().__init__(host, port, "localhost", timeout)
        self.local_hostname = self._own_name

    def connect(
        self,
        host: str = "localhost",
        port: int = 0,
        source_address: Any = None,  # noqa: ARG002 - its signature
    ) -> tuple[int, bytes]:
        """Connect like smtplib, with a socket of the network."""
        # The name whose certificate STARTTLS expects; a newer smtplib sets it in the method that
        # this replaces.
        self._host = host
        address = f"[{host}]" if ":" in host else host
        self.sock = connection = self._network.connect(
            f"{self._scheme}://{address}:{port}", timeout=self.timeout
        )
        self.file, self._own_name = None, _client_name(connection)
        peer = str(connection.getpeername()[0])
        if self._must_be_loopback and not is_loopback(peer):
            self.close()
            raise NotConfiguredError(
                (
                    f"the name {host} resolves to another machine ({peer}): the email would be "
                    "sent unencrypted"
                ),
                remedy="use starttls or tls, or correct how that name is resolved (/etc/hosts)",
            )
        return self.getreply()

    def getreply(self) -> tuple[int, bytes]:
        """Read a response like smtplib, with a limit on lines."""
        if self.file is None and self.sock is not None:
            self.file = _LimitedReader(self.sock.makefile("rb"))
        return super().getreply()


class _LimitedReader:
    """A reader with a limit on lines."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._lines_left = _MAX_LINES

    def readline(self, limit: int) -> bytes:
        self._lines_left -= 1
        if self._lines_left < 0:
            raise OSError("the server sent too many lines")
        return self._file.readline(limit)

    def close(self) -> None:
        self._file.close()


def _client_name(connection: socket.socket) -> str:
    """Return this machine's name if it has a domain, otherwise its address (RFC 5321, 4.1.4)."""
    name = socket.gethostname()
    if re.fullmatch(r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+", name) and len(name) < 256:
        return name
    peer = str(connection.getsockname()[0]).partition("%")[0]
    return f"[IPv6:{peer}]" if ":" in peer else f"[{peer}]"
