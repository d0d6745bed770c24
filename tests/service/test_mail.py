"""Notices by e-mail: one for each event, without link or title, by a server that was named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from sealpipe_rehearsal.running_service import RunningService
from sealpipe_rehearsal.server import start
from sealpipe_service import mail, webhook_post, webhooks
from sealpipe_service.json_bodies import NOTIFY_ON
from sealpipe_service.mail import MailError, MailPost, MailServer, check_address, read_server
from sealpipe_service.webhook_deliveries import BACKOFF
from service.callers import Api
from support.mailbox import PASSWORD, USER, Mailbox
from support.ports import silent_port

ANN = "ann@acme.example"
SENDER = "vault@corp.example"
TITLE = "canary\r\nBcc: eve@evil.example\u202e<b>https://evil.example</b>"


@pytest.fixture
def service() -> Iterator[RunningService]:
    with start(extended=True) as running:
        yield running


@pytest.fixture
def api(service: RunningService, caller: Callable[..., Api]) -> Api:
    return caller(service)


@pytest.fixture
def mailbox(tmp_path: Path) -> Iterator[Mailbox]:
    with Mailbox(tmp_path, starttls=False, login=False) as made:
        yield made


def use(service: RunningService, monkeypatch: pytest.MonkeyPatch, url: str | None) -> None:
    """Let a service send by a mail server, from ann's account."""
    server = None if url is None else read_server(url, SENDER)
    monkeypatch.setattr(service.service.deliverer, "_mail_server", server)
    webhooks.add_mail(service.service.store, "default", ANN, b"123456789")


def test_there_are_words_for_all_that_a_share_can_ask_for() -> None:
    assert set(mail.WORDS) == {*NOTIFY_ON, "submitted"}


def test_each_event_that_a_share_asks_for_is_one_mail(
    service: RunningService, api: Api, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(service, monkeypatch, f"smtp://127.0.0.1:{mailbox.port}")
    asked = api.created(notify_on=["deleted"], title=TITLE)
    silent = api.created(title=TITLE)
    for code in (asked, silent):
        assert api.http.delete(f"/shares/{code}").status_code == 200
    assert [each.state for each in service.deliveries()] == ["delivered"]
    (received,) = mailbox.received
    assert (received.sender, received.recipients) == (SENDER, [ANN])
    assert received.client == "corp.example", "not the name of the machine"
    got = received.mail
    assert (got["from"], got["to"]) == (SENDER, ANN)
    assert got["subject"] == f"sealpipe: share {asked} was ended by its sender"
    assert got["auto-submitted"] == "auto-generated"
    assert got.get_content_type() == "text/plain"
    assert f"The share {asked} was ended by its sender." in got.get_content()
    for unwanted in (b"canary", b"evil", b"://", b"Bcc"):
        assert unwanted not in received.content


def test_a_submission_is_told_to_the_owner_of_its_request(
    service: RunningService, api: Api, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(service, monkeypatch, f"smtp://127.0.0.1:{mailbox.port}")
    code = api.asked(title=TITLE)
    path = f"{service.base_url.removesuffix('/v1')}/links/requests/{code}/submit"
    assert httpx.post(path, json={"data": "AAAA"}, trust_env=False).status_code == 201
    assert [each.state for each in service.deliveries()] == ["delivered"]
    assert mailbox.received[0].mail["subject"] == f"sealpipe: request {code} has a submission"
    assert b"canary" not in mailbox.received[0].content


def test_what_is_refused_is_sent_again(
    service: RunningService, api: Api, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(service, monkeypatch, f"smtp://127.0.0.1:{mailbox.port}")
    mailbox.answers.rcpt = "451 4.7.1 later, canary"
    code = api.created(notify_on=["deleted"])
    assert api.http.delete(f"/shares/{code}").status_code == 200
    (waiting,) = service.deliveries()
    assert (waiting.state, waiting.attempts) == ("waiting", 1)
    assert waiting.answered == "SMTPRecipientsRefused"
    mailbox.answers.rcpt = ""
    service.advance(BACKOFF[0])
    assert [each.state for each in service.deliveries()] == ["delivered"]
    assert mailbox.received[0].mail["message-id"].startswith("<notice-")


def test_without_a_server_it_waits_and_says_why(
    service: RunningService, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(service, monkeypatch, None)
    code = api.created(notify_on=["deleted"])
    assert api.http.delete(f"/shares/{code}").status_code == 200
    (waiting,) = service.deliveries()
    assert (waiting.state, waiting.answered) == ("waiting", "not sent: no mail server is named")


def test_an_address_is_no_webhook(service: RunningService, api: Api) -> None:
    """It gets no events, takes no room of the plan, signs nothing, and assistants do not see it."""
    service.set_account(plan="business", webhooks=1)
    endpoint = webhooks.add_mail(service.service.store, "default", ANN, b"123456789")
    code = api.created()
    assert api.http.delete(f"/shares/{code}").status_code == 200
    assert service.deliveries() == []
    store = service.service.store
    assert webhooks.endpoints(store) == webhooks.endpoints(store, "default") == []
    service.add_webhook("https://example.com/")
    assert webhooks.rotate(store, endpoint.id, b"r" * 32, webhooks.Unsealed()) is None
    assert [each.mail_address for each in webhooks.mail_endpoints(store)] == [ANN]


# -- how it is handed over -------------------------------------------------------------------------

CONTENT = b"Subject: x\r\n\r\ntext\r\n"


@pytest.fixture
def trust(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Mailbox], None]]:
    def trust(mailbox: Mailbox) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(mailbox.ca_file))
        webhook_post.tls_context.cache_clear()

    yield trust
    webhook_post.tls_context.cache_clear()


def test_a_login_goes_through_starttls_with_a_verified_certificate(
    tmp_path: Path, trust: Callable[[Mailbox], None]
) -> None:
    with Mailbox(tmp_path) as box:
        server = read_server(f"smtp://{USER}:{PASSWORD}@127.0.0.1:{box.port}", SENDER)
        assert MailPost(server, ANN, CONTENT).send() == "SSLCertVerificationError"
        trust(box)
        assert MailPost(server, ANN, CONTENT).send() == 250
        assert (box.received[0].user, box.received[0].encrypted) == (USER, True)


def test_smtps_is_tls_from_the_first_byte(tmp_path: Path, trust: Callable[[Mailbox], None]) -> None:
    with Mailbox(tmp_path, implicit_tls=True, login=False) as box:
        trust(box)
        server = read_server(f"smtps://127.0.0.1:{box.port}", SENDER)
        assert MailPost(server, ANN, CONTENT).send() == 250
        assert box.received[0].encrypted


def test_nothing_goes_in_clear_beyond_this_machine_and_no_login_at_all(
    mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    login = read_server(f"smtp://{USER}:{PASSWORD}@127.0.0.1:{mailbox.port}", SENDER)
    assert MailPost(login, ANN, CONTENT).send() == "SMTPNotSupportedError"
    monkeypatch.setattr(mail, "is_loopback", lambda _: False)
    plain = read_server(f"smtp://127.0.0.1:{mailbox.port}", SENDER)
    assert MailPost(plain, ANN, CONTENT).send() == "SMTPNotSupportedError"
    assert mailbox.received == []


def test_who_does_not_answer_is_given_up_in_time(
    mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mail, "TOTAL_SECONDS", 0.3)
    mailbox.answers.hangs.add("data")
    server = read_server(f"smtp://127.0.0.1:{mailbox.port}", SENDER)
    told = MailPost(server, ANN, CONTENT).send()
    assert told in ("TimeoutError", "SMTPServerDisconnected"), "by the timer, or by the socket"
    nobody = read_server(f"smtp://127.0.0.1:{silent_port()}", SENDER)
    assert MailPost(nobody, ANN, CONTENT).send() == "ConnectionRefusedError"


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("smtp://mail.example", ("mail.example", 587, None, None, False)),
        ("smtps://a%40b:p%3A@mail.example", ("mail.example", 465, "a@b", "p:", True)),
        ("smtp://[::1]:25/", ("::1", 25, None, None, False)),
    ],
)
def test_the_address_of_a_server_is_read(url: str, found: tuple[object, ...]) -> None:
    assert read_server(url, SENDER) == MailServer(*found, SENDER)  # type: ignore[arg-type]
    assert "p:" not in repr(read_server(url, SENDER))


@pytest.mark.parametrize(
    "url", ["", "smtp:", "http://mail.example", "smtp://h:x", "smtp://h/?tls=no", "smtp://h#x"]
)
def test_another_address_is_none(url: str) -> None:
    with pytest.raises(MailError):
        read_server(url, SENDER)


@pytest.mark.parametrize(
    "text",
    [
        *("", "ann", "Ann <ann@acme.example>", "a@b,c@d", "a@b\r\nBcc: c@d", "a@b c", '"a b"@c'),
        *("\u0430nn@acme.example", "ann@acme.example\u202e", "a@b.", f"{'a' * 250}@acme.example"),
    ],
)
def test_only_one_plain_address_is_an_address(text: str) -> None:
    with pytest.raises(MailError):
        check_address(text)
