"""A real mail server (aiosmtpd) with STARTTLS and logins, whose certificate an authority of the
test's has signed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTPUTF8
from pathlib import Path
from typing import Any, Self

import trustme
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session

from sealpipe_rehearsal.running_service import RunningService
from support import terminal

USER, PASSWORD = "relay", "Relay-Canary-8f1e"
LOOPBACK = "127.0.0.1"
PATIENCE = 10


@dataclass(frozen=True)
class Received:
    """A message as it was taken."""

    sender: str
    recipients: list[str]
    content: bytes
    user: str | None
    encrypted: bool
    options: list[str]
    client: str
    """As what the sender introduced itself."""

    @property
    def mail(self) -> EmailMessage:
        return message_from_bytes(self.content, policy=SMTPUTF8)  # type: ignore[return-value]

    def body(self, kind: str = "plain") -> str:
        """The message as text of that kind, such as `html`."""
        part = self.mail.get_body((kind,))
        assert part is not None
        return str(part.get_content())


@dataclass
class Answers:
    """What the server answers instead of its usual, by stage; a stage in `breaks` ends the
    connection.
    """

    mail: str = ""
    rcpt: str = ""
    data: str = ""
    breaks: set[str] = field(default_factory=set)
    hangs: set[str] = field(default_factory=set)


class Mailbox:
    """The server. `received` is what it took; `port`, `host` and `ca_file` are for the client's
    settings.
    """

    host = LOOPBACK

    def environ(self, sender: str = "ci@acme.example") -> dict[str, str]:
        """What a user sets to send through it."""
        return {
            "SEALPIPE_CA_FILE": str(self.ca_file),
            "SEALPIPE_PLUGIN_EMAIL__HOST": self.host,
            "SEALPIPE_PLUGIN_EMAIL__PORT": str(self.port),
            "SEALPIPE_PLUGIN_EMAIL__USERNAME": USER,
            "SEALPIPE_PLUGIN_EMAIL__PASSWORD": PASSWORD,
            "SEALPIPE_PLUGIN_EMAIL__SENDER": sender,
        }

    def __init__(
        self,
        folder: Path,
        *,
        starttls: bool = True,
        implicit_tls: bool = False,
        login: bool = True,
        utf8: bool = True,
        identity: str = LOOPBACK,
    ) -> None:
        authority = trustme.CA()
        self.ca_file = folder / "mail-ca.pem"
        authority.cert_pem.write_to_path(self.ca_file)
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(identity).configure_cert(self._tls)
        self._implicit = implicit_tls
        self._options: dict[str, Any] = {
            "enable_SMTPUTF8": utf8,
            "decode_data": False,
            "hostname": "mail.test",
        }
        if login:
            self._options |= {
                "authenticator": _authenticate,
                "auth_required": True,
                "auth_require_tls": starttls,
            }
        if starttls and not implicit_tls:
            self._options |= {"tls_context": self._tls, "require_starttls": login}
        if implicit_tls:
            # TLS is there already, unseen by it.
            self._options |= {
                "auth_require_tls": False,
                "auth_required": False,
            }
        self.received: list[Received] = []
        self.answers = Answers()
        # The server's own, in which messages stand.
        logging.getLogger("mail.log").setLevel(logging.CRITICAL)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._sessions: set[SMTP] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        context = self._tls if self._implicit else None
        making = self._loop.create_server(self._protocol, LOOPBACK, 0, ssl=context)
        self._server = asyncio.run_coroutine_threadsafe(making, self._loop).result(PATIENCE)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(PATIENCE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        own = asyncio.current_task()
        tasks = [task for task in asyncio.all_tasks() if task is not own]
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 2)
        for session in self._sessions:
            if session.transport is not None:
                session.transport.abort()

    def _protocol(self) -> SMTP:
        made = SMTP(self, loop=self._loop, **self._options)
        self._sessions.add(made)
        return made

    # The names and what they are given are aiosmtpd's.

    async def handle_MAIL(  # noqa: N802
        self,
        server: SMTP,
        _session: Session,
        envelope: Envelope,
        sender: str,
        options: list[str],
    ) -> str:
        envelope.mail_from = sender
        envelope.mail_options.extend(options)
        return await self._stage("mail", server) or "250 2.1.0 OK"

    async def handle_RCPT(  # noqa: N802
        self,
        server: SMTP,
        _session: Session,
        envelope: Envelope,
        to: str,
        _options: list[str],
    ) -> str:
        answer = await self._stage("rcpt", server)
        if not answer or answer.startswith("25"):
            envelope.rcpt_tos.append(to)
        return answer or "250 2.1.5 OK"

    async def handle_DATA(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        user = session.auth_data.decode() if session.authenticated else None
        taken = Received(
            envelope.mail_from or "",
            envelope.rcpt_tos,
            bytes(envelope.content or b""),
            user,
            session.ssl is not None or self._implicit,
            envelope.mail_options,
            session.host_name or "",
        )
        if not self.answers.data:
            self.received.append(taken)
        return await self._stage("data", server) or "250 2.0.0 taken"

    async def _stage(self, name: str, server: SMTP) -> str:
        if name in self.answers.breaks and server.transport is not None:
            server.transport.abort()
        if name in self.answers.hangs:
            await asyncio.sleep(PATIENCE)
        return str(getattr(self.answers, name))


def _authenticate(
    _server: SMTP, _session: Session, _envelope: Envelope, _mechanism: str, data: Any
) -> AuthResult:
    fine = (data.login, data.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=fine, auth_data=data.login, handled=False)


Start = Callable[..., Mailbox]


def open_mailed_link(mailbox: Mailbox, service: RunningService) -> dict[str, str]:
    """Open the link of the first mail as soon as it is there; what its recipient sees."""
    end = time.monotonic() + terminal.PATIENCE
    while not mailbox.received and time.monotonic() < end:
        time.sleep(0.01)
    (link,) = re.findall(r"http\S+#\S+", mailbox.received[0].body())
    return terminal.opened(service, link)
