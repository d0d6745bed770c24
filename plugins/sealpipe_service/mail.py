"""Notices by e-mail: what a mail says, and one attempt to hand it to the operator's mail server.

A mail has a code and what happened: no title, for strangers' words have no place in it, and no
link.
"""

from __future__ import annotations

import contextlib
import json
import re
import smtplib
from dataclasses import dataclass, field
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from urllib.parse import unquote, urlsplit

from .addresses import is_loopback
from .clock import format_rfc3339, from_timestamp
from .webhook_post import TOTAL_SECONDS, cut, time_limit, tls_context

WORDS = {
    "viewed": "share {} was opened",
    "denied": "share {} was not opened: the passcode was missing or wrong",
    "expired": "share {} has expired",
    "deleted": "share {} was ended by its sender",
    "submitted": "request {} has a submission",
}
"""What happened, by the names of `notify_on`; and of requests, which have none."""
_PORTS = {"smtp": 587, "smtps": 465}
_ADDRESS = re.compile(r"[A-Za-z0-9._+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")


class MailError(Exception):
    """The mail server's address, or one of a mail, is none. Its text has no part of a secret."""


@dataclass(frozen=True)
class MailServer:
    """Who takes mails. With `is_tls`, TLS comes first."""

    host: str
    port: int
    user: str | None
    password: str | None = field(repr=False)
    is_tls: bool
    sender: str

    def needs_starttls(self) -> bool:
        """Return whether it has to encrypt: but for a server here, without a login, always."""
        return not self.is_tls and not (self.user is None and is_loopback(self.host))


def read_server(url: str, sender: str) -> MailServer:
    """Read smtp://[USER[:PASSWORD]@]HOST[:PORT], or smtps. Raises MailError."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = None, None
    if parts is None or parts.scheme not in _PORTS or not parts.hostname:
        raise MailError("the mail server's address is not smtp://HOST or smtps://HOST")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise MailError("the mail server's address has something after its port")
    return MailServer(
        host=parts.hostname,
        port=port or _PORTS[parts.scheme],
        user=None if parts.username is None else unquote(parts.username),
        password=None if parts.password is None else unquote(parts.password),
        is_tls=parts.scheme == "smtps",
        sender=check_address(sender),
    )


def check_address(text: str) -> str:
    """Return an address of mail. Raises MailError for all but plain ones: no name, no list."""
    if not _ADDRESS.fullmatch(text) or len(text) > 254:
        raise MailError("the address is not one plain address of e-mail")
    return text


def make_notice(event: str, code: str, at: datetime) -> bytes:
    """Return what waits to be sent."""
    return json.dumps({"notice": event, "short_code": code, "at": format_rfc3339(at)}).encode()


def write(server: MailServer, to: str, number: int, created_at: float, notice: bytes) -> bytes:
    """Return the mail for a notice. One that is sent twice has one Message-ID."""
    told = json.loads(notice)
    said = WORDS[told["notice"]].format(told["short_code"])
    domain = server.sender.rpartition("@")[2]
    mail = EmailMessage(policy=SMTP)
    mail["From"], mail["To"] = server.sender, to
    mail["Subject"] = f"sealpipe: {said}"
    mail["Date"] = format_datetime(from_timestamp(created_at))
    mail["Message-ID"] = f"<notice-{number}-{int(created_at)}@{domain}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(
        f"The {said}.\n\nTime: {told['at']}\n\nThis service sends no links: a mail that has one is "
        "not from it.\n"
    )
    return mail.as_bytes()


class MailPost:
    """An attempt, which any thread can end with `abort`."""

    def __init__(
        self, server: MailServer, to: str, content: bytes, ca_file: str | None = None
    ) -> None:
        self._server, self._to, self._content = server, to, content
        self._ca_file = ca_file
        self._smtp: smtplib.SMTP | None = None
        self._aborted = False

    def send(self) -> int | str:
        """Send it; return the status, or the name of the error. Raises nothing."""
        try:
            with time_limit(self.abort):
                self._hand_over()
        except smtplib.SMTPResponseException as error:
            return f"{type(error).__name__} {error.smtp_code}"
        except (OSError, smtplib.SMTPException, ValueError) as error:
            return TimeoutError.__name__ if self._aborted else type(error).__name__
        finally:
            if self._smtp is not None:
                self._smtp.close()
        return 250

    def _hand_over(self) -> None:
        server = self._server
        name = server.sender.rpartition("@")[2]  # not this machine's
        context = tls_context(self._ca_file)
        self._smtp = smtp = (
            smtplib.SMTP_SSL(server.host, server.port, name, timeout=TOTAL_SECONDS, context=context)
            if server.is_tls
            else smtplib.SMTP(server.host, server.port, name, timeout=TOTAL_SECONDS)
        )
        if server.needs_starttls():
            smtp.starttls(context=context)
        if server.user is not None:
            smtp.login(server.user, server.password or "")
        smtp.sendmail(server.sender, [self._to], self._content)
        with contextlib.suppress(OSError, smtplib.SMTPException):
            smtp.quit()

    def abort(self) -> None:
        """End the attempt now."""
        self._aborted = True
        sock = None if self._smtp is None else self._smtp.sock
        if sock is not None:
            cut(sock)
