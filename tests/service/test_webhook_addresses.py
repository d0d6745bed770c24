"""A server sends webhooks to public addresses, whatever a name means and whenever it changes."""

from __future__ import annotations

import ipaddress
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import trustme

from sealpipe_rehearsal.running_service import RunningService
from sealpipe_service import webhook_post
from sealpipe_service.addresses import Address
from sealpipe_service.public_addresses import allow_all, allow_public, is_public
from sealpipe_service.webhook_post import WebhookPost
from service.callers import Api
from support.fake_web import Receiver

NOT_PUBLIC = [
    *("127.0.0.1", "10.1.2.3", "172.31.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1"),
    *("0.0.0.9", "192.0.0.1", "198.19.0.1", "203.0.113.9", "224.0.0.1", "255.255.255.255"),
    *("::", "::1", "::127.0.0.1", "fe80::1", "fd00:ec2::254", "ff02::1", "2001:db8::1"),
    *("::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::10.0.0.1", "64:ff9b:1::1"),
    *("2002:7f00:1::", "2002:a00:1::", "2001:0:7f00:1::", "100::1", "5f00::1", "3fff::1"),
]
PUBLIC = [
    "192.0.1.1",
    "8.8.8.8",
    "172.32.0.1",
    "2606:4700::1",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
]


@pytest.mark.parametrize("text", NOT_PUBLIC)
def test_an_address_is_not_public(text: str) -> None:
    assert not is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", PUBLIC)
def test_an_address_is_public(text: str) -> None:
    assert is_public(ipaddress.ip_address(text))


def test_a_network_that_the_operator_names_is_allowed_and_nothing_beside_it() -> None:
    allows = allow_public(["10.1.0.0/16", "fd12::/16"])
    for text, allowed in (("10.1.0.9", 1), ("10.2.0.9", 0), ("fd12::1", 1), ("8.8.8.8", 1)):
        assert allows(ipaddress.ip_address(text)) is bool(allowed)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


Means = Callable[..., None]


@pytest.fixture
def means(monkeypatch: pytest.MonkeyPatch) -> Means:
    """Let names mean these addresses: the first list for the first look-up, and so on."""
    real = socket.getaddrinfo

    def set_answers(*answers: Sequence[str]) -> None:
        left = list(answers)

        def look_up(host: object, port: int, **words: int) -> list[object]:
            assert host == "hooks.example.com"
            return [each for text in left.pop(0) for each in real(text, port, **words)]

        monkeypatch.setattr(webhook_post.socket, "getaddrinfo", look_up)

    return set_answers


def only(*texts: str) -> Callable[[Address], bool]:
    return lambda address: str(address) in texts


def test_the_connection_goes_to_the_address_that_was_checked(
    receiver: Receiver, means: Means
) -> None:
    """A name that means something else at the next look-up is looked up once for an attempt."""
    url = receiver.url.replace("127.0.0.1", "hooks.example.com")
    means(["127.0.0.1"], ["127.0.0.9"])
    assert WebhookPost(url, b"{}", {}, only("127.0.0.1")).send() == 204
    assert (
        WebhookPost(url, b"{}", {}, only("127.0.0.1")).send() == "not sent: 127.0.0.9 is not public"
    )
    (hook,) = receiver.hooks
    assert hook.headers["host"].startswith("hooks.example.com:")


def test_one_address_that_is_not_public_is_enough(receiver: Receiver, means: Means) -> None:
    means(["127.0.0.1", "127.0.0.9"])
    url = receiver.url.replace("127.0.0.1", "hooks.example.com")
    told = WebhookPost(url, b"{}", {}, only("127.0.0.1")).send()
    assert (told, receiver.hooks) == ("not sent: 127.0.0.9 is not public", [])


def test_another_address_is_tried_where_nobody_listens(receiver: Receiver, means: Means) -> None:
    means(["127.0.0.9", "127.0.0.1"])
    url = receiver.url.replace("127.0.0.1", "hooks.example.com")
    assert WebhookPost(url, b"{}", {}, only("127.0.0.1", "127.0.0.9")).send() == 204


def test_a_certificate_is_for_the_name_and_not_for_the_address(
    means: Means, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("hooks.example.com").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    webhook_post.tls_context.cache_clear()
    try:
        with Receiver(tls=context) as secure:
            url = secure.url.replace("127.0.0.1", "hooks.example.com")
            means(["127.0.0.1"])
            assert WebhookPost(url, b"{}", {}, only("127.0.0.1")).send() == 204
            refused = WebhookPost(secure.url, b"{}", {}, allow_all)
            monkeypatch.undo()
            assert refused.send() == "SSLCertVerificationError"
            webhook_post.tls_context.cache_clear()
            means(["127.0.0.1"], ["127.0.0.1"])
            for file, told in ((None, "SSLCertVerificationError"), (str(tmp_path / "ca.pem"), 204)):
                assert WebhookPost(url, b"{}", {}, only("127.0.0.1"), file).send() == told
    finally:
        webhook_post.tls_context.cache_clear()


def test_an_attempt_is_ended_in_the_middle_of_a_handshake() -> None:
    with ExitStack() as opened:
        listening = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
        post = WebhookPost(f"https://127.0.0.1:{listening.getsockname()[1]}/", b"{}", {})
        sending = opened.enter_context(ThreadPoolExecutor(1)).submit(post.send)
        caller = opened.enter_context(listening.accept()[0])
        caller.settimeout(webhook_post.READ_SECONDS / 2)
        assert caller.recv(4096), "the handshake's first words"
        post.abort()
        while caller.recv(4096):
            pass
        assert sending.result() == "TimeoutError"


def test_an_attempt_whose_look_up_took_too_long_sends_nothing(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = WebhookPost(receiver.url, b"{}", {})
    real = socket.getaddrinfo

    def look_up(*words: Any, **more: Any) -> Any:
        post.abort()  # its time is over
        return real(*words, **more)

    monkeypatch.setattr(webhook_post.socket, "getaddrinfo", look_up)
    assert (post.send(), receiver.hooks) == ("TimeoutError", [])


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "0"),
        *("[::1]", "[::ffff:7f00:1]", "169.254.169.254", "[::ffff:169.254.169.254]"),
    ],
)
def test_a_host_that_is_spelled_oddly_is_what_it_means(host: str) -> None:
    told = WebhookPost(f"https://{host}/", b"{}", {}, allow_public([])).send()
    assert str(told).endswith("is not public")


def test_a_refused_delivery_is_tried_again_and_holds_up_nothing(
    service: RunningService, api: Api, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliverer = service.service.deliverer
    monkeypatch.setattr(deliverer, "_allows", only("127.0.0.1"))
    service.add_webhook("https://[::1]:9/")
    service.add_webhook(receiver.url)
    code = api.created()
    assert api.http.delete(f"/shares/{code}").status_code == 200
    refused, sent = service.deliveries()
    assert (refused.state, refused.answered) == ("waiting", "not sent: ::1 is not public")
    assert (sent.state, len(receiver.hooks)) == ("delivered", 1)
    assert api.created()
