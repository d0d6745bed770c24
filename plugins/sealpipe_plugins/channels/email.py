"""email:name@example.com, a message in plain text and HTML, to one address."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP, SMTPUTF8
from email.utils import make_msgid

from sealpipe.plugin import BadReference, Channel, Context, Delivery, Health, Message, NotConfigured
from sealpipe_plugins.backends.smtp import Server, SmtpSettings
from sealpipe_plugins.channels.address import address
from sealpipe_plugins.channels.wording import as_html, as_plain, subject


class EmailChannel(Channel):
    """By a mail server of the user's. Nothing that was sent can be read back."""

    settings: SmtpSettings

    def __init__(self, settings: SmtpSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._sender = _own(settings.sender, "sender")
        self._reply_to = None if settings.reply_to is None else _own(settings.reply_to, "reply_to")
        self._server = Server(settings, context)

    def validate(self, to: str) -> None:
        """One address, in its bare form."""
        address(to)

    def canonical(self, to: str) -> str:
        """With its domain in ASCII."""
        return address(to)

    def send(self, message: Message, to: str) -> Delivery:
        """By SMTP. The id is the Message-ID."""
        recipient = address(to)
        sender = self._sender.addr_spec
        utf8 = not f"{sender}{recipient}".isascii()
        mail = EmailMessage(SMTPUTF8 if utf8 else SMTP)
        mail["From"] = self._sender
        mail["To"] = _address("", recipient)
        if self._reply_to is not None:
            mail["Reply-To"] = self._reply_to
        mail["Subject"] = subject(message)
        mail["Date"] = datetime.now(UTC)
        mail["Message-ID"] = make_msgid(domain=self._sender.domain)
        mail["Auto-Submitted"] = "auto-generated"  # no out-of-office note answers it (RFC 3834)
        # Quoted-printable: no server on the way has a reason to write it anew, and the link stays whole.
        mail.set_content(as_plain(message), cte="quoted-printable")
        mail.add_alternative(as_html(message), subtype="html", cte="quoted-printable")
        self._server.send(sender, recipient, mail.as_bytes(), utf8=utf8)
        return Delivery(id=str(mail["Message-ID"]))

    def check(self) -> Health:
        """Connects and logs in."""
        return Health(ok=True, detail=self._server.check())


def _own(text: str, setting: str) -> Address:
    """An address of the settings, with a name or without."""
    match = re.fullmatch(r'(?:"?([^<>"]*?)"? *<([^<>]+)>|(\S+))', text)
    try:
        if match is not None and text.isprintable():
            return _address(match[1] or "", address(match[2] or match[3]))
    except BadReference:
        pass
    raise NotConfigured(f"the setting {setting} is not one address", remedy="write Name <name@example.com>")


def _address(name: str, bare: str) -> Address:
    local, _, domain = bare.rpartition("@")
    return Address(name, local, domain)
