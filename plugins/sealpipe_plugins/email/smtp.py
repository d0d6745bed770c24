"""A mail server, by SMTP. Only the codes of its responses are ever shown."""

from __future__ import annotations

import contextlib
import re
import smtplib
from collections.abc import Collection, Mapping
from typing import ClassVar, Final, Literal

from pydantic import Field

from sealpipe.plugin import (
    AccessDeniedError,
    BackendAuthError,
    Context,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    Secret,
    UnavailableError,
    UnknownOutcomeError,
    UnsupportedError,
    is_loopback,
)
from sealpipe.plugin.settings import PluginSettings
from sealpipe_plugins.email.smtp_connection import SmtpConnection
from sealpipe_plugins.http_errors import CHECK_FIRST, connect_error, iter_causes


class SmtpSettings(PluginSettings):
    """Settings of the mail server.

    `security` is starttls, tls (from the first byte), none (loopback only) or plain-internal:
    unencrypted to a relay inside a network, allowed in the config file only. The default is tls on
    port 465, otherwise starttls. The default port is 465 with tls, otherwise 587. `timeout` is in
    seconds, for each step.
    """

    host: str
    port: int | None = Field(None, ge=1, le=65535)
    security: Literal["starttls", "tls", "none", "plain-internal"] | None = None
    username: str | None = None
    password: Secret | None = None
    sender: str
    reply_to: str | None = None
    timeout: float = Field(30.0, gt=0, le=600)

    file_only_values: ClassVar[Mapping[str, Collection[str]]] = {"security": ("plain-internal",)}


class MailServer:
    """The configured server. Each message uses its own connection."""

    def __init__(self, settings: SmtpSettings, context: Context) -> None:
        self._settings = settings
        self._context = context
        self._security = settings.security or ("tls" if settings.port == _TLS_PORT else "starttls")
        self._port = settings.port or (_TLS_PORT if self._security == "tls" else _SUBMISSION_PORT)
        self._server_name = f"the mail server at {settings.host}:{self._port}"
        if self._security == "none" and not is_loopback(settings.host):
            raise NotConfiguredError(
                f"mail to {settings.host} would be sent unencrypted",
                remedy="use starttls or tls; none is only for loopback. For a relay inside your "
                "network that has no "
                f'TLS, write security = "{_PLAIN_INTERNAL}" into the config file',
            )
        if (settings.username is None) != (settings.password is None):
            missing = "password" if settings.password is None else "username"
            raise NotConfiguredError(
                f"the login of {context.store} lacks its {missing}",
                remedy=f"set {missing}, or unset the other",
            )
        if (
            self._security == _PLAIN_INTERNAL
            and settings.username is not None
            and not is_loopback(settings.host)
        ):
            raise NotConfiguredError(
                f"the login of {context.store} would be sent unencrypted to {settings.host}",
                remedy="unset username and password, or use a server with TLS",
            )

    def send(self, sender: str, to: str, content: bytes, *, utf8: bool) -> None:
        """Send a message: ASCII with CRLF, with UTF-8 headers if `utf8`. Raises PluginError."""
        with self._context.network.exchange():
            self._send(sender, to, content, utf8=utf8)

    def _send(self, sender: str, to: str, content: bytes, *, utf8: bool) -> None:
        smtp, is_complete = self._connect(), False
        try:
            _send_envelope(smtp, self._server_name, sender, to, len(content), utf8=utf8)
            _require_code(smtp.docmd("DATA"), (354,), self._server_name, "refuses the message")
            # Not smtplib's data(): it does not report whether the final dot was sent.
            smtp.send(re.sub(rb"(?m)^\.", b"..", content))
            is_complete = True  # from here on the server may have accepted it, whatever it responds
            smtp.send(b".\r\n")
            _require_code(smtp.getreply(), (250,), self._server_name, "refuses the message")
            with contextlib.suppress(OSError):
                smtp.putcmd("QUIT")
            return
        except OSError as error:  # includes smtplib's own errors
            timed_out = (
                " in time"
                if any(isinstance(each, TimeoutError) for each in iter_causes(error))
                else ""
            )
        finally:
            smtp.close()
        if is_complete:
            raise UnknownOutcomeError(
                f"{self._server_name} was sent the message and did not respond{timed_out}",
                remedy=CHECK_FIRST,
            )
        problem = f"did not respond{timed_out}" if timed_out else "closed the connection"
        raise UnavailableError(f"{self._server_name} {problem} before it received the message")

    def check(self) -> str:
        """Connect and log in. Returns a description of the connection."""
        with self._context.network.exchange():
            smtp = self._connect()
            with contextlib.suppress(OSError):
                smtp.putcmd("QUIT")
        smtp.close()
        login = "logged in" if self._settings.username else "no login"
        return f"{self._settings.host}:{self._port}, {self._security}, {login}"

    def _connect(self) -> smtplib.SMTP:
        """Return a secured connection that is logged in."""
        smtp: smtplib.SMTP | None = None
        failure: PluginError
        try:
            smtp = self._open()
            self._start_tls(smtp)
            self._log_in(smtp)
            return smtp
        except PluginError as error:
            failure = error
        except smtplib.SMTPResponseException as error:
            failure = _refusal_error(
                (error.smtp_code, b""), self._server_name, "refuses the connection"
            )
        except smtplib.SMTPException as error:
            timed_out = any(isinstance(each, TimeoutError) for each in iter_causes(error))
            problem = (
                "did not respond in time"
                if timed_out
                else "closed the connection, or does not speak SMTP"
            )
            failure = UnavailableError(
                f"{self._server_name} {problem}", remedy="check host, port and security"
            )
        except OSError as error:
            failure = connect_error(error, "the mail server", f"{self._settings.host}:{self._port}")
        if smtp is not None:
            smtp.close()
        raise failure

    def _open(self) -> smtplib.SMTP:
        settings, network = self._settings, self._context.network
        must_be_loopback = self._security == "none" or (
            self._security == _PLAIN_INTERNAL and settings.username is not None
        )
        return SmtpConnection(
            network,
            settings.host,
            self._port,
            tls=self._security == "tls",
            timeout=settings.timeout,
            must_be_loopback=must_be_loopback,
        )

    def _start_tls(self, smtp: smtplib.SMTP) -> None:
        smtp.ehlo_or_helo_if_needed()
        if self._security != "starttls":
            return
        if not smtp.has_extn("starttls"):
            raise UnsupportedError(
                f"{self._server_name} offers no STARTTLS",
                remedy="use security = tls with its port (465), or another server",
            )
        smtp.starttls(context=self._context.network.tls_context())
        smtp.ehlo()

    def _log_in(self, smtp: smtplib.SMTP) -> None:
        user, password = self._settings.username, self._settings.password
        if user is None or password is None:
            return
        failure: PluginError
        try:
            smtp.login(user, password.reveal())
            return
        except smtplib.SMTPAuthenticationError as error:
            code = error.smtp_code
            failure = BackendAuthError(
                f"{self._server_name} refused the login ({code})",
                remedy="check username and password",
            )
            if 400 <= code < 500:
                failure = UnavailableError(
                    f"{self._server_name} cannot check the login now ({code})"
                )
        except smtplib.SMTPServerDisconnected:
            failure = UnavailableError(
                f"{self._server_name} closed the connection during the login"
            )
        except smtplib.SMTPException:
            failure = UnsupportedError(
                f"{self._server_name} offers no supported login method",
                remedy="remove username and password",
            )
        except UnicodeError:
            failure = NotConfiguredError("username and password must be ASCII")
        raise failure


_PLAIN_INTERNAL: Final = "plain-internal"
_TLS_PORT: Final = 465
_SUBMISSION_PORT: Final = 587
_LOGIN_REQUIRED: Final = (530, 534, 535, 538)
_NO_MAILBOX: Final = (550, 551, 553)

_Response = tuple[int, bytes]


def _send_envelope(
    smtp: smtplib.SMTP, server_name: str, sender: str, to: str, size: int, *, utf8: bool
) -> None:
    if utf8 and not smtp.has_extn("smtputf8"):
        raise UnsupportedError(
            f"{server_name} does not accept non-ASCII addresses (no SMTPUTF8)",
            remedy="use an ASCII address",
        )
    options = [f"SIZE={size}"] if smtp.has_extn("size") else []
    _require_code(
        smtp.mail(sender, [*options, *(["SMTPUTF8", "BODY=8BITMIME"] if utf8 else [])]),
        (250,),
        server_name,
        f"does not allow the sender {sender}",
    )
    response = smtp.rcpt(to)
    code, reason = response[0], re.match(rb"5\.(\d{1,3})\.", response[1])
    if 500 <= code < 600 and (reason[1] == b"1" if reason else code in _NO_MAILBOX):
        raise ReferenceValueError(
            f"{server_name} has no mailbox {to} ({code})", remedy="check the address"
        )
    _require_code(response, (250, 251), server_name, f"does not accept mail for {to}")


def _require_code(
    response: _Response, codes: tuple[int, ...], server_name: str, otherwise: str
) -> None:
    if response[0] not in codes:
        raise _refusal_error(response, server_name, otherwise)


def _refusal_error(response: _Response, server_name: str, problem: str) -> PluginError:
    code = response[0]
    if code in _LOGIN_REQUIRED:
        return BackendAuthError(
            f"{server_name} requires a login first ({code})", remedy="set username and password"
        )
    if 400 <= code < 500:
        return UnavailableError(f"{server_name} asks to try again later ({code})")
    return AccessDeniedError(
        f"{server_name} {problem} ({code})", remedy="give its administrator this number"
    )
