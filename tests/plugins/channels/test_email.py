"""email: on a real mail server (aiosmtpd) with STARTTLS, logins and a certificate authority of its
own.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from typing import Any

import pytest

from plugins.channels.using import (
    FRAGMENT,
    LINK,
    TITLE,
    Using,
    passcode,
    share,
    told,
)
from sealpipe.errors import (
    AccessDeniedError,
    BackendAuthError,
    NotConfiguredError,
    ReferenceValueError,
    SettingError,
    UnavailableError,
    UnsupportedError,
)
from support.mailbox import PASSWORD, USER, Mailbox

TO = "ann@example.com"
LONGEST = f"{'a' * 64}@{'b' * 61}.{'b' * 61}.{'b' * 61}.ccc"
"""254 octets, with the most that may stand before the @."""
ELSEWHERE = "127.1"
"""Another spelling of this machine, which is not taken for it: what goes there is as good as on the
network.
"""

Start = Callable[..., Mailbox]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Start]:
    """Start mail servers: `started(starttls=..., login=...)`; see `Mailbox`."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(Mailbox(tmp_path, **options))


@pytest.fixture
def mailbox(started: Start) -> Mailbox:
    return started()


def email(
    mailbox: Mailbox, *, trusting: bool = True, login: bool = True, **more: str | None
) -> Using:
    """The channel, set up for a server; keyword arguments change its settings."""
    settings = {
        "host": mailbox.host,
        "port": str(mailbox.port),
        "sender": "CI of Acme <ci@acme.example>",
        "timeout": "5",
    }
    if login:
        settings |= {"username": USER, "password": PASSWORD}
    environ = {
        f"SEALPIPE_PLUGIN_EMAIL__{k.upper()}": v
        for k, v in {**settings, **more}.items()
        if v is not None
    }
    return Using("email", environ, mailbox.ca_file if trusting else None)


class TestTheMessage:
    """What arrives."""

    def test_it_arrives_by_starttls_with_a_login_at_one_address(self, mailbox: Mailbox) -> None:
        delivery = email(mailbox).send(TO)
        [got] = mailbox.received
        assert (got.sender, got.recipients, got.user, got.encrypted) == (
            "ci@acme.example",
            [TO],
            USER,
            True,
        )
        assert delivery.id == got.mail["Message-ID"]
        assert not delivery.confirmed

    def test_it_is_plain_text_and_html_and_both_hold_the_link(self, mailbox: Mailbox) -> None:
        email(mailbox).send(TO)
        mail = mailbox.received[0].mail
        assert mail.get_content_type() == "multipart/alternative"
        text, page = [part.get_content() for part in mail.iter_parts()]
        assert [part.get_content_type() for part in mail.iter_parts()] == [
            "text/plain",
            "text/html",
        ]
        assert f"\n{LINK}\n" in text.replace("\r\n", "\n")
        assert f'"{TITLE}"' in text
        assert f'<a href="{LINK}">{LINK}</a>' in page

    def test_its_headers_say_that_it_is_of_a_machine_and_whom_to_answer(
        self, mailbox: Mailbox
    ) -> None:
        email(mailbox, reply_to="ops@acme.example").send(TO)
        mail = mailbox.received[0].mail
        assert mail["From"] == "CI of Acme <ci@acme.example>"
        assert (mail["To"], mail["Reply-To"], mail["Subject"]) == (
            TO,
            "ops@acme.example",
            "A secret for you",
        )
        assert b"\r\nSubject: A secret for you\r\n" in mailbox.received[0].content
        assert mail["Auto-Submitted"] == "auto-generated"
        assert mail["Message-ID"].endswith("@acme.example>")
        assert abs(mail["Date"].datetime.timestamp() - time.time()) < 60
        assert not mail.defects

    def test_the_link_is_in_no_header(self, mailbox: Mailbox) -> None:
        email(mailbox).send(TO, share(subject=f"For you: {LINK}"))
        head = mailbox.received[0].content.partition(b"\r\n\r\n")[0]
        assert FRAGMENT.encode() not in head
        assert mailbox.received[0].mail["Subject"] == "A message from sealpipe"

    def test_every_line_is_ascii_and_short_and_a_dot_stays_a_dot(self, mailbox: Mailbox) -> None:
        text = f".\n..dots\nGrüße 🔑\n{'long ' * 300}\n{LINK}"
        email(mailbox).send(TO, share(text))
        content = mailbox.received[0].content
        assert content.isascii()
        assert max(map(len, content.split(b"\r\n"))) <= 78
        assert b"\n" not in content.replace(b"\r\n", b"")
        assert b"\r" not in content.replace(b"\r\n", b"")
        body = message_from_bytes(content, policy=default).get_body(("plain",))
        assert body.get_content().replace("\r\n", "\n") == text + "\n"  # type: ignore[union-attr]

    def test_a_passcode_is_exact_and_no_link(self, mailbox: Mailbox) -> None:
        code = "a<b>&'\"`*_ c"
        email(mailbox).send(TO, passcode(code))
        text, page = [part.get_content() for part in mailbox.received[0].mail.iter_parts()]
        assert code in text.splitlines()
        assert "<code>a&lt;b&gt;&amp;&#x27;&quot;`*_ c</code>" in page
        assert "<a " not in page

    def test_a_text_without_the_link_has_it_at_its_end(self, mailbox: Mailbox) -> None:
        email(mailbox).send(TO, share("Here you are."))
        text = mailbox.received[0].body()
        assert text.splitlines() == ["Here you are.", "", LINK]


class TestTheRecipient:
    """Exactly one address, whatever came from outside."""

    @pytest.mark.parametrize(
        "to",
        [
            "", "ann", "@example.com", "ann@", "ann@localhost", "ann@@example.com",
            "ann@b@example.com", "ann@example.com,eve@evil.example",
            "ann@example.com;eve@evil.example", "ann@example.com eve@evil.example",
            "ann@example.com\n", "ann@example.com\r\nBcc: eve@evil.example",
            "ann@example.com\n\nhello", "ann@example.com?cc=eve@evil.example",
            "ann@example.com?bcc=eve@evil.example&subject=x", "ann?x@example.com",
            "Ann <ann@example.com>", "<ann@example.com>", "ann@example.com (Ann)",
            '"ann"@example.com', '"a@evil.example> "@example.com', "ann%evil.example@example.com",
            "evil.example!ann@example.com", "@evil.example:ann@example.com",
            "mailto:ann@example.com", "ann@[127.0.0.1]", "ann@127.0.0.1", "ann@example.com.",
            "ann@.example.com", "ann@exa_mple.com", "ann@-example.com", "ann@example。com",
            "ann@example.com\x00", "ann@exam\u202eple.com", ".ann@example.com", "ann.@example.com",
            "a..n@example.com", "-oQ/tmp@example.com", "|sh@example.com", "ann\u00a0@example.com",
            "a\\@example.com", "ann\uff20example.com", "ﬁn@example.com", f"{'a' * 65}@example.com",
            f"a@{'b.' * 130}example.com", "root:x@example.com", "a[b]@example.com",
            "ann\u200b@example.com",
            "a€@example.com", f"{LONGEST}c", "\u3000ann@example.com", "ann @example.com",
        ],
    )  # fmt: skip
    def test_what_is_not_one_address_changes_nothing_but_gets_an_error(
        self, mailbox: Mailbox, to: str
    ) -> None:
        error = email(mailbox).fails(ReferenceValueError, to)
        assert error.exit_code == 2
        assert error.message.startswith("the recipient is not a single address: it has ")
        assert "evil" not in f"{error.message} {error.remedy}"
        assert not mailbox.received

    @pytest.mark.parametrize(
        ("to", "arrives_at"),
        [
            ("ann@example.com", "ann@example.com"),
            ("Ann.O'Neil+a/b=c@mail.Example.COM", "Ann.O'Neil+a/b=c@mail.example.com"),
            ("ann@bücher.example", "ann@xn--bcher-kva.example"),
            ("ann@xn--bcher-kva.example", "ann@xn--bcher-kva.example"),
            (LONGEST, LONGEST),
        ],
    )
    def test_an_address_arrives_as_it_is_its_domain_in_ascii(
        self, mailbox: Mailbox, to: str, arrives_at: str
    ) -> None:
        channel = email(mailbox)
        channel.send(to)
        assert mailbox.received[0].recipients == [arrives_at]
        assert mailbox.received[0].mail["To"].addresses[0].addr_spec == arrives_at
        assert channel.canonical(to) == arrives_at

    def test_a_name_beyond_ascii_goes_by_smtputf8(self, mailbox: Mailbox) -> None:
        email(mailbox).send("jürgen@bücher.example")
        [got] = mailbox.received
        assert got.recipients == ["jürgen@xn--bcher-kva.example"]
        assert "SMTPUTF8" in got.options
        assert got.mail["To"] == "jürgen@xn--bcher-kva.example"

    def test_a_server_without_smtputf8_says_so(self, started: Start) -> None:
        box = started(utf8=False)
        error = email(box).fails(UnsupportedError, "jürgen@example.com")
        assert "SMTPUTF8" in error.message
        assert not box.received


class TestTheServer:
    """Who is trusted with a message."""

    def test_tls_from_the_first_byte(self, started: Start) -> None:
        box = started(implicit_tls=True)
        email(box, security="tls").send(TO)
        assert box.received[0].encrypted

    def test_plain_to_loopback_and_only_when_asked_for(self, started: Start) -> None:
        box = started(starttls=False, login=False)
        error = email(box, login=False).fails(UnsupportedError, TO)
        assert "offers no STARTTLS" in error.message
        assert not box.received
        email(box, login=False, security="none").send(TO)
        assert not box.received[0].encrypted

    @pytest.mark.parametrize(
        ("name", "client"), [("runner-1", "[127.0.0.1]"), ("ci.example.com", "ci.example.com")]
    )
    def test_a_machine_says_its_name_if_that_has_a_domain(
        self, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch, name: str, client: str
    ) -> None:
        monkeypatch.setattr(socket, "gethostname", lambda: name)
        email(mailbox).send(TO)
        assert mailbox.received[0].client == client

    def test_plain_to_anywhere_else_is_refused_before_any_connection(
        self, mailbox: Mailbox
    ) -> None:
        error = email(mailbox, security="none", host="mail.acme.example").fails(
            NotConfiguredError, TO
        )
        assert error.message == "mail to mail.acme.example would be sent unencrypted"
        assert 'write security = "plain-internal" into the config file' in error.remedy

    def test_in_clear_to_a_relay_inside_a_network_where_the_config_file_says_so(
        self, started: Start
    ) -> None:
        box = started(starttls=False, login=False)
        own = {
            "host": ELSEWHERE,
            "port": box.port,
            "sender": "ci@acme.example",
            "security": "plain-internal",
        }
        Using("email", {}, config={"plugins": {"email": own}}).send(TO)
        relay = {"stores": {"relay": {"plugin": "email", **own}}}
        Using("relay", {"SEALPIPE_STORE__RELAY__SENDER": "ops@acme.example"}, config=relay).send(TO)
        assert [(got.sender, got.encrypted) for got in box.received] == [
            ("ci@acme.example", False),
            ("ops@acme.example", False),
        ]

    @pytest.mark.parametrize("written", [{}, {"security": "starttls"}, {"security": None}])
    def test_the_environment_cannot_say_so(
        self, started: Start, written: dict[str, str | None]
    ) -> None:
        box = started(starttls=False, login=False)
        environ = {
            "SEALPIPE_PLUGIN_EMAIL__HOST": ELSEWHERE,
            "SEALPIPE_PLUGIN_EMAIL__PORT": str(box.port),
            "SEALPIPE_PLUGIN_EMAIL__SENDER": "ci@acme.example",
            "SEALPIPE_PLUGIN_EMAIL__SECURITY": "plain-internal",
        }
        with pytest.raises(SettingError) as caught:
            Using("email", environ, config={"plugins": {"email": written}}).send(TO)
        assert caught.value.message == (
            "only the config file can set email's security to plain-internal, and "
            "SEALPIPE_PLUGIN_EMAIL__SECURITY does"
        )
        assert "[plugins.email]" in caught.value.remedy
        store = {
            f"SEALPIPE_STORE__RELAY__{name.partition('__')[2]}": value
            for name, value in environ.items()
        }
        with pytest.raises(
            SettingError, match="only the config file can set relay's security to plain-internal"
        ):
            Using("relay", {**store, "SEALPIPE_STORE__RELAY__PLUGIN": "email"}).send(TO)
        assert not box.received

    def test_a_login_never_goes_in_clear(self, started: Start) -> None:
        box = started(starttls=False, login=False)
        own = {
            "host": ELSEWHERE,
            "port": box.port,
            "sender": "ci@acme.example",
            "security": "plain-internal",
        }
        login = {
            "SEALPIPE_PLUGIN_EMAIL__USERNAME": USER,
            "SEALPIPE_PLUGIN_EMAIL__PASSWORD": PASSWORD,
        }
        error = Using("email", login, config={"plugins": {"email": own}}).fails(
            NotConfiguredError, TO
        )
        assert error.message == f"the login of email would be sent unencrypted to {ELSEWHERE}"
        here = Using(
            "email", login, config={"plugins": {"email": {**own, "host": box.host}}}
        ).fails(UnsupportedError, TO)
        assert "offers no supported login" in here.message

    @pytest.mark.parametrize("implicit", [False, True])
    def test_a_certificate_without_a_trusted_signature_is_refused(
        self,
        started: Start,
        implicit: bool,  # noqa: FBT001
    ) -> None:
        box = started(implicit_tls=implicit)
        error = email(box, trusting=False, security="tls" if implicit else None).fails(
            NotConfiguredError, TO
        )
        assert "from an authority that is not trusted here" in error.message
        assert error.remedy == "name the CA's file in SEALPIPE_CA_FILE"
        assert not box.received

    def test_a_certificate_of_another_host(self, started: Start) -> None:
        box = started(identity="mail.other.example")
        error = email(box).fails(NotConfiguredError, TO)
        assert "a certificate for another host" in error.message

    def test_a_wrong_password(self, mailbox: Mailbox) -> None:
        error = email(mailbox, password="Wrong-Canary-31").fails(BackendAuthError, TO)
        assert re.fullmatch(
            rf"the mail server at 127\.0\.0\.1:{mailbox.port} refused the login \(535\)",
            error.message,
        )
        assert "Wrong-Canary" not in told(error)

    def test_a_server_that_wants_a_login(self, mailbox: Mailbox) -> None:
        error = email(mailbox, login=False).fails(BackendAuthError, TO)
        assert "requires a login first (530)" in error.message

    def test_a_server_without_logins(self, started: Start) -> None:
        box = started(starttls=False, login=False)
        error = email(box, security="none").fails(UnsupportedError, TO)
        assert "offers no supported login" in error.message

    def test_a_login_is_whole_or_none(self, mailbox: Mailbox) -> None:
        error = email(mailbox, password=None).fails(NotConfiguredError, TO)
        assert error.message == "the login of email lacks its password"

    def test_a_silent_server_times_out(self, mailbox: Mailbox) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            error = email(mailbox, port=str(silent.getsockname()[1]), timeout="0.3").fails(
                UnavailableError, TO
            )
        assert "in time" in error.message

    def test_check_logs_in_and_sends_nothing(self, mailbox: Mailbox) -> None:
        health = email(mailbox).check()
        assert (health.ok, health.detail) == (
            True,
            f"127.0.0.1:{mailbox.port}, starttls, logged in",
        )
        assert not mailbox.received
        with pytest.raises(BackendAuthError):
            email(mailbox, password="x").check()


class TestWhatTheServerAnswers:
    """Certainly not taken, refused, or nobody knows."""

    @pytest.mark.parametrize(
        ("stage", "answer", "kind", "says"),
        [
            ("mail", "451 4.3.0 later", UnavailableError, "asks to try again later (451)"),
            (
                "mail",
                "550 5.7.1 no",
                AccessDeniedError,
                "does not allow the sender ci@acme.example (550)",
            ),
            ("rcpt", "450 4.2.0 greylisted", UnavailableError, "asks to try again later (450)"),
            ("rcpt", "550 5.1.1 unknown", ReferenceValueError, f"has no mailbox {TO} (550)"),
            ("rcpt", "550 no such user", ReferenceValueError, f"has no mailbox {TO} (550)"),
            (
                "rcpt",
                "554 5.7.1 relay access denied",
                AccessDeniedError,
                f"does not accept mail for {TO} (554)",
            ),
            (
                "rcpt",
                "550 5.7.26 policy",
                AccessDeniedError,
                f"does not accept mail for {TO} (550)",
            ),
            *(
                (stage, f"{code} login", BackendAuthError, f"requires a login first ({code})")
                for stage in ("mail", "rcpt", "data")
                for code in (530, 534, 535, 538)
            ),
            ("rcpt", "252 perhaps", AccessDeniedError, f"does not accept mail for {TO} (252)"),
            ("data", "452 4.3.1 full", UnavailableError, "asks to try again later (452)"),
            ("data", "554 5.6.0 spam", AccessDeniedError, "refuses the message (554)"),
        ],
    )
    def test_a_refusal_is_reported_with_its_code(
        self, mailbox: Mailbox, stage: str, answer: str, kind: type[Any], says: str
    ) -> None:
        setattr(mailbox.answers, stage, f"{answer} Server-Words-77")
        error = email(mailbox).fails(kind, TO)
        assert error.message == f"the mail server at 127.0.0.1:{mailbox.port} {says}"
        assert "Server-Words" not in told(error)
        assert not mailbox.received

    def test_a_server_that_forwards_the_message_takes_it(self, mailbox: Mailbox) -> None:
        mailbox.answers.rcpt = "251 it has moved, and I send it on"
        email(mailbox).send(TO)
        assert len(mailbox.received) == 1

    @pytest.mark.parametrize("stage", ["mail", "rcpt"])
    def test_a_connection_lost_before_the_last_dot_sent_nothing(
        self, mailbox: Mailbox, stage: str
    ) -> None:
        mailbox.answers.breaks.add(stage)
        error = email(mailbox).fails(UnavailableError, TO)
        assert error.message.endswith("closed the connection before it received the message")

    def test_no_answer_before_it_is_not(self, mailbox: Mailbox) -> None:
        mailbox.answers.hangs.add("rcpt")
        error = email(mailbox, timeout="2").fails(UnavailableError, TO)
        assert not mailbox.received
        assert error.message.endswith("did not respond in time before it received the message")


class TestSettings:
    """What is missing or wrong is named."""

    def test_a_missing_host_is_named(self) -> None:
        with pytest.raises(SettingError, match="the store email lacks the setting host") as caught:
            Using("email", {"SEALPIPE_PLUGIN_EMAIL__SENDER": "ci@acme.example"}).send(TO)
        assert caught.value.remedy == "set SEALPIPE_PLUGIN_EMAIL__HOST"

    @pytest.mark.parametrize(
        "sender", ["ci", "ci@acme.example, b@acme.example", "ci@acme.example\nBcc: x@y.example"]
    )
    def test_a_sender_is_one_address(self, mailbox: Mailbox, sender: str) -> None:
        error = email(mailbox, sender=sender).fails(NotConfiguredError, TO)
        assert error.message == "the setting sender is not a single address"

    @pytest.mark.parametrize(
        ("given", "port", "security"),
        [
            ({}, 587, "starttls"),
            ({"port": "465"}, 465, "tls"),
            ({"port": "25"}, 25, "starttls"),
            ({"security": "tls"}, 465, "tls"),
        ],
    )
    def test_port_465_means_tls(self, given: dict[str, str], port: int, security: str) -> None:
        settings = {"host": "mail.acme.example", "sender": "ci@acme.example", **given}
        using = Using(
            "email", {f"SEALPIPE_PLUGIN_EMAIL__{k.upper()}": v for k, v in settings.items()}
        )
        server: Any = using.registry.channel("email")._server  # type: ignore[attr-defined]
        assert (server._port, server._security) == (port, security)
