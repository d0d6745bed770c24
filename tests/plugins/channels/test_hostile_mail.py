"""A mail that an attacker writes: whatever a title, a name or a text holds, the mail is the one
that was meant.

What arrived is read here by hand, and once more by the standard library's reader, which is what
many mail programs and ticket systems use.
"""

from __future__ import annotations

import base64
import quopri
import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, example, given, settings

from plugins.channels.using import LINK, Using
from sealpipe.delivery.messages import MessageContext, build_link_message, build_passcode_message
from sealpipe.errors import PluginError, UnsupportedError
from sealpipe.plugin import Message, ReferenceValueError, Secret
from sealpipe.testing.hostile import MAIL
from sealpipe_plugins.email import message as mails
from sealpipe_plugins.email.address import parse_address
from sealpipe_plugins.email.message import Header, NamedAddress, write_mail
from support.mailbox import Mailbox, Received
from support.outside_text import outside

TO = "ann@example.com"
HEADERS = [
    "From",
    "To",
    "Reply-To",
    "Subject",
    "Date",
    "Message-ID",
    "Auto-Submitted",
    "MIME-Version",
    "Content-Type",
]
ENDS = datetime(2026, 12, 1, tzinfo=UTC)
PART = ["Content-Type", "Content-Transfer-Encoding"]


@pytest.fixture(scope="module")
def mailbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mailbox]:
    with Mailbox(tmp_path_factory.mktemp("mail"), starttls=False, login=False) as server:
        yield server


def send(mailbox: Mailbox, message: Message, to: str = TO, **more: str) -> Received:
    own = {
        "host": mailbox.host,
        "port": str(mailbox.port),
        "security": "none",
        "sender": "CI of Acme <ci@acme.example>",
    }
    environ = {**own, "reply_to": "ops@acme.example", **more}
    mailbox.received.clear()
    Using("email", {f"SEALPIPE_PLUGIN_EMAIL__{k.upper()}": v for k, v in environ.items()}).send(
        to, message
    )
    [got] = mailbox.received
    return got


def titled(title: str, *, template: str | None = None, kind: str = "share") -> Message:
    return build_link_message(
        Secret(LINK),
        MessageContext(kind, title, "aB3", ENDS, 1, with_passcode=False, template=template),
    )


def fields(head: bytes) -> list[tuple[str, str]]:
    """Header fields by hand: lines that begin with white space go on, every other is a field."""
    assert not re.search(rb"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)|(?<!\r)\n", head)
    found: list[tuple[str, str]] = []
    for line in head.decode().split("\r\n"):
        if line.startswith(" "):
            found[-1] = found[-1][0], found[-1][1] + line
        else:
            name, value = line.split(": ", 1)
            found.append((name, value))
    return found


def said(value: str) -> str:
    """What a header without structure says: RFC 2047, by hand, once."""
    if not value.startswith("=?"):
        assert "=?" not in value
        return value
    words = [re.fullmatch(r"=\?utf-8\?b\?([A-Za-z0-9+/=]+)\?=", word) for word in value.split(" ")]
    assert all(word is not None and len(word[0]) <= 75 for word in words)
    return "".join(base64.b64decode(word[1]).decode() for word in words if word)


def is_as_meant(got: Received, message: Message, to: str = TO) -> str:
    """Its headers, its one recipient, its two parts with the link. The subject."""
    assert got.recipients == [to]
    assert got.content.isascii()
    assert max(map(len, got.content.split(b"\r\n"))) <= 78
    head, _, body = got.content.partition(b"\r\n\r\n")
    found = fields(head)
    assert [name for name, _ in found] == HEADERS
    values = dict(found)
    assert values["From"] == "CI of Acme <ci@acme.example>"
    assert (values["To"], values["Reply-To"]) == (to, "ops@acme.example")
    match = re.fullmatch(
        r'multipart/alternative; boundary="(=_[0-9a-f]{32})"', values["Content-Type"]
    )
    assert match is not None
    empty, plain, page, end = body.split(f"--{match[1]}".encode())
    assert (empty, end.strip()) == (b"", b"--")
    for part, kind in ((plain, "plain"), (page, "html")):
        top, _, content = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        assert [name for name, _ in fields(top)] == PART
        assert dict(fields(top))["Content-Type"] == f'text/{kind}; charset="utf-8"'
        text = quopri.decodestring(content).decode()
        assert text.count(message.secret.reveal()) == (1 if kind == "plain" else 2)
    assert set(re.findall(r"<\s*/?([a-z!]+)", quopri.decodestring(page).decode(),
        re.IGNORECASE)) <= {
        "!DOCTYPE", "html", "head", "meta", "title", "body", "p", "br", "a", "code"}  # fmt: skip
    read = got.mail
    assert [name for name, _ in read.items()] == HEADERS
    assert [each.addr_spec for each in read["To"].addresses] == [to]
    assert [part.get_content_type() for part in read.walk()] == [
        "multipart/alternative",
        "text/plain",
        "text/html",
    ]
    assert not any(part.defects for part in read.walk())  # type: ignore[attr-defined]
    subject = said(values["Subject"])
    assert str(read["Subject"]) == subject
    return subject


@pytest.mark.parametrize(
    "title",
    [text for text in MAIL if text.isprintable() and len(text) < 180 and "\u202e" not in text],
)
def test_words_of_rfc_2047_in_a_title_stay_the_text_that_they_are(
    mailbox: Mailbox, title: str
) -> None:
    message = titled(title)
    assert (
        is_as_meant(send(mailbox, message), message)
        == f"A secret for you: {' '.join(title.split())}"
    )


@given(title=outside(), text=outside())
@example(title=MAIL[0], text=MAIL[0])
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_title_and_no_text_does(mailbox: Mailbox, title: str, text: str) -> None:
    about = titled(title, kind="request")
    message = about._replace(
        text=Secret(f"{text.replace(LINK, '')}\n{LINK}\n{text}"), subject=title
    )
    is_as_meant(send(mailbox, message), message)


@given(title=outside())
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_title_in_a_text_of_the_users_own_does(mailbox: Mailbox, title: str) -> None:
    message = titled(title, template="{title}\nBcc: x@y.example\n\n{link} {title}\n.\n--=_\n")
    is_as_meant(send(mailbox, message), message)


@given(title=outside())
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_title_beside_a_passcode_does(mailbox: Mailbox, title: str) -> None:
    message = build_passcode_message(
        Secret("Passcode-Canary-3"),
        MessageContext("share", title, "aB3", None, None, with_passcode=True),
    )
    got = send(mailbox, message)
    assert [name for name, _ in got.mail.items()] == HEADERS
    assert [part.get_content_type() for part in got.mail.walk()][1:] == ["text/plain", "text/html"]


@pytest.mark.parametrize(
    "name",
    ["=?utf-8?q?=0D=0ABcc:_eve@evil.example?=", "Äcme, GmbH; (CI) \\ : @", "a@b.example,",
        "CI of Acme " * 20,
     "\U0001f511"],
)  # fmt: skip
def test_a_senders_name_is_no_header_and_no_address(mailbox: Mailbox, name: str) -> None:
    got = send(mailbox, titled("T"), sender=f"{name} <ci@acme.example>")
    assert [each for each, _ in got.mail.items()] == HEADERS
    [sender] = got.mail["From"].addresses
    assert sender.addr_spec == "ci@acme.example"
    assert "".join(sender.display_name.split()) == "".join(name.split())


@pytest.mark.parametrize("sign", [*"#$&'*+/=^_{}~-aZ0", "\u00fc", "\u65e5", "a" * 60])
def test_every_address_that_is_taken_can_be_written(mailbox: Mailbox, sign: str) -> None:
    to = f"x{sign}y@{'b' * 60}.{'c' * 60}.example"
    got = send(
        mailbox, titled("T"), to=to, sender=f"CI <{to}>", reply_to=f"{'Long name, ' * 9} <{to}>"
    )
    assert (got.sender, got.recipients) == (to, [to])
    assert [each for each, _ in got.mail.items()] == HEADERS
    assert got.mail["Message-ID"].endswith(f"@{'b' * 60}.{'c' * 60}.example>")


class TestReadOnceMore:
    """What was written is read before it is sent: where it reads as something else, nothing is
    sent.
    """

    @pytest.mark.parametrize(
        ("written", "says"),
        [
            ("x\r\nBcc: eve@evil.example", "its headers differ"),
            ("x\r\n\r\n<form>", "its headers differ"),
            ("x\nBcc: eve@evil.example", "it has a control character"),
            ("x\x00", "it has a control character"),
            ("=?utf-8?q?y?=", "its Subject differs"),
            ("y", "its Subject differs"),
            ("w" * 1000, "it has a line that is too long"),
        ],
    )
    def test_a_header_that_was_written_wrongly_is_not_sent(
        self, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch, written: str, says: str
    ) -> None:
        monkeypatch.setattr(
            mails, "_encode_text", lambda text: written if text.startswith("A secret") else text
        )
        mailbox.received.clear()
        with pytest.raises(PluginError, match="would arrive changed") as caught:
            send(mailbox, titled("x"))
        assert says in caught.value.message
        assert LINK not in f"{caught.value.message}{caught.value.remedy}"
        assert mailbox.received == []

    def test_nor_is_a_second_address(self) -> None:
        for address in (
            "a@b.example, c@d.example",
            "a@b.example (c)",
            "g: a@b.example;",
            "<a@b.example>",
        ):
            with pytest.raises(UnsupportedError):
                write_mail([Header("To", NamedAddress("", address))], "x\n", "x\n")

    def test_nor_a_reader_that_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*_: object, **__: object) -> None:
            raise IndexError("of the standard library's")

        monkeypatch.setattr(mails, "message_from_string", broken)
        with pytest.raises(UnsupportedError, match="cannot be read \\(IndexError\\)"):
            write_mail([Header("Subject", "x")], "x\n", "x\n")


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("a b@example.com", "white space or an invisible character"),
        ("a\x07b@example.com", "white space or an invisible character"),
        ("a\u20acb@example.com", "an invalid part before the @"),
        (f"{'a' * 60}@{'d' * 60}.{'d' * 60}.{'d' * 60}.com.example", "too many characters"),
    ],
)
def test_an_address_says_what_is_wrong_with_it(address: str, problem: str) -> None:
    with pytest.raises(ReferenceValueError, match=f"it has {problem}$"):
        parse_address(address)


def test_the_longest_address_and_letters_of_any_script_are_taken() -> None:
    longest = f"{'a' * 60}@{'d' * 60}.{'d' * 60}.{'d' * 60}.{'e' * 10}"
    assert len(longest) == 254
    assert parse_address(longest) == longest
    assert parse_address("ren\u00e9@example.com") == "ren\u00e9@example.com"
