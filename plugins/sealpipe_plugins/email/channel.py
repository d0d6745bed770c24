"""email:name@example.com, a message in plain text and HTML, to one address."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import format_datetime, make_msgid

from sealpipe.plugin import (
    Channel,
    Context,
    Delivery,
    Health,
    Message,
    NotConfiguredError,
    ReferenceValueError,
)
from sealpipe_plugins.email.address import parse_address
from sealpipe_plugins.email.message import Header, NamedAddress, Token, write_mail
from sealpipe_plugins.email.smtp import MailServer, SmtpSettings
from sealpipe_plugins.wording import as_html, as_plain, subject_line


class EmailChannel(Channel):
    """Email through the user's mail server. A sent message cannot be read back."""

    settings: SmtpSettings

    def __init__(self, settings: SmtpSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._sender = _parse_setting(settings.sender, "sender")
        self._reply_to = (
            None if settings.reply_to is None else _parse_setting(settings.reply_to, "reply_to")
        )
        self._server = MailServer(settings, context)

    def validate(self, to: str) -> None:
        """Accept one bare address."""
        parse_address(to)

    def canonical(self, to: str) -> str:
        """Return the address with its domain in ASCII."""
        return parse_address(to)

    def send(self, message: Message, to: str) -> Delivery:
        """Send by SMTP. The id of the delivery is the Message-ID."""
        recipient, sender = parse_address(to), self._sender.address
        message_id = make_msgid(domain=sender.rpartition("@")[2])
        reply_headers = [] if self._reply_to is None else [Header("Reply-To", self._reply_to)]
        # Suppresses out-of-office replies (RFC 3834).
        headers = [
            Header("From", self._sender),
            Header("To", NamedAddress("", recipient)),
            *reply_headers,
            Header("Subject", subject_line(message)),
            Header("Date", Token(format_datetime(datetime.now(UTC)))),
            Header("Message-ID", Token(message_id)),
            Header("Auto-Submitted", Token("auto-generated")),
        ]
        content = write_mail(headers, as_plain(message), as_html(message))
        self._server.send(sender, recipient, content, utf8=not content.isascii())
        return Delivery(id=message_id)

    def check(self) -> Health:
        """Connect and log in."""
        return Health(ok=True, detail=self._server.check())


def _parse_setting(text: str, setting: str) -> NamedAddress:
    """Parse an address in the settings, with or without a name."""
    match = re.fullmatch(r'(?:"?([^<>"]*?)"? *<([^<>]+)>|(\S+))', text)
    try:
        if match is not None and text.isprintable():
            return NamedAddress((match[1] or "").strip(), parse_address(match[2] or match[3]))
    except ReferenceValueError:
        pass
    raise NotConfiguredError(
        f"the setting {setting} is not a single address", remedy="write Name <name@example.com>"
    )
