"""share.deleted at the owner's webhook endpoints: signed, limited by plan, sent again, and in
nobody's way.
"""

from __future__ import annotations

import json
import queue
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import trustme

from sealpipe import WebhookError, webhooks
from sealpipe_rehearsal import control_client
from sealpipe_rehearsal.control_client import RehearsalError, Webhook
from sealpipe_rehearsal.running_service import RunningService
from sealpipe_rehearsal.server import start
from sealpipe_service import webhook_post
from sealpipe_service.database.access import DatabaseError, Row
from sealpipe_service.webhook_deliveries import BACKOFF
from service.callers import Api
from support.fake_web import Asked, Receiver
from support.own_service import wait_for
from support.ports import silent_port
from support.stopwatch import stopwatch

DAY = 24 * 60 * 60
PATIENCE = 30


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


def payload(code: str) -> bytes:
    return b'{"event":"share.deleted","short_code":"%s"}' % code.encode()


def deleted(api: Api) -> str:
    """The code of a share that was deleted."""
    code = api.created()
    assert api.http.delete(f"/shares/{code}").status_code == 200
    return code


def verified(service: RunningService, hook: Asked, webhook: Webhook, *secrets: str) -> float:
    """When it was signed, as sealpipe's own check finds it by the service's clock."""
    keys = list(secrets) or [webhook.secret.reveal()]
    header = hook.headers[webhook.header.lower()]
    return webhooks.verify(
        hook.body, header, keys, now=service.service.clock.timestamp()
    ).timestamp()


@pytest.mark.spec("events.emitted", "events.deleted", "gap.webhook-signature")
def test_the_owner_is_sent_the_payload_and_nothing_else(
    service: RunningService, api: Api, receiver: Receiver
) -> None:
    webhook = service.add_webhook(receiver.url)
    code = deleted(api)
    (delivery,) = service.deliveries()
    assert (delivery.state, delivery.attempts, delivery.answered, delivery.due) == (
        "delivered",
        1,
        "204",
        None,
    )
    (hook,) = receiver.hooks
    assert hook.body == payload(code)
    assert json.loads(hook.body) == service.events()[0].payload
    assert hook.headers["content-type"] == "application/json"
    assert webhook.header == "X-Service-Signature"
    assert abs(verified(service, hook, webhook) - time.time()) < PATIENCE


@pytest.mark.spec("events.owner")
def test_when_a_team_key_expires_a_share_the_owners_endpoints_get_the_event(
    service: RunningService, caller: Callable[..., Api], receiver: Receiver
) -> None:
    owner, colleague = (
        caller(service, account=name, organization="team") for name in ("owner", "colleague")
    )
    service.add_webhook(receiver.url, account="owner")
    with Receiver() as other:
        service.add_webhook(other.url, account="colleague")
        code = owner.created()
        assert colleague.http.delete(f"/shares/{code}").status_code == 200
        assert [each.state for each in service.deliveries()] == ["delivered"]
        assert ([hook.body for hook in receiver.hooks], other.hooks) == ([payload(code)], [])


def test_every_endpoint_of_the_account_gets_every_event_in_order(
    service: RunningService, api: Api
) -> None:
    with Receiver() as one, Receiver() as two:
        service.add_webhook(one.url)
        service.add_webhook(two.url)
        codes = [deleted(api) for _ in range(5)]
        assert len(service.deliveries()) == 10
        for each in (one, two):
            assert [hook.body for hook in each.hooks] == [payload(code) for code in codes]


def test_three_endpoints_in_a_crowd_of_events_get_each_once_and_in_order(
    service: RunningService,
) -> None:
    with Receiver() as one, Receiver() as two, Receiver() as three:
        endpoints = (one, two, three)
        for each in endpoints:
            service.add_webhook(each.url)
        codes = [str(number) for number in range(120)]
        for code in codes:
            with service.service.database.write() as transaction:
                for row in transaction.rows("webhooks"):
                    transaction.change("queue", webhook_id=row["id"], event=payload(code))
        service.service.deliverer.wake()
        assert {each.state for each in service.deliveries()} == {"delivered"}
        for each in endpoints:
            assert [hook.body for hook in each.hooks] == [payload(code) for code in codes]


def test_a_delete_that_is_refused_sends_nothing(
    service: RunningService, api: Api, receiver: Receiver
) -> None:
    service.add_webhook(receiver.url)
    code = deleted(api)
    assert api.http.delete(f"/shares/{code}").status_code == 404
    service.service.failing["share.expiring"] = 1
    assert api.http.delete(f"/shares/{api.created()}").status_code == 500
    assert len(service.deliveries()) == 1


# -- how many, and whose ---------------------------------------------------------------------------


@pytest.mark.spec("events.webhooks", "limits.business", "limits.enterprise", "limits.other-plans")
@pytest.mark.parametrize(("plan", "room"), [("business", 3), ("enterprise", 10), ("none", 0)])
def test_a_plan_has_room_for_so_many_endpoints(
    service: RunningService, plan: str, room: int
) -> None:
    service.set_account(plan=plan)
    for number in range(room):
        service.add_webhook(f"https://example.com/{number}")
    with pytest.raises(
        RehearsalError, match=f"the plan allows {room} webhook endpoints"
    ) as refused:
        service.add_webhook("https://example.com/more")
    assert refused.value.status == 403
    service.set_account("other", plan="business")
    service.add_webhook("https://example.com/", account="other")


@pytest.mark.spec("limits.raised")
def test_the_operator_can_raise_the_number_and_removing_one_makes_room(
    service: RunningService,
) -> None:
    service.set_account(webhooks=4)
    made = [service.add_webhook(f"https://example.com/{number}") for number in range(4)]
    with pytest.raises(RehearsalError):
        service.add_webhook("https://example.com/more")
    service.remove_webhook(made[0].id)
    service.add_webhook("https://example.com/more")
    with pytest.raises(RehearsalError, match="the webhook endpoint does not exist"):
        service.remove_webhook(made[0].id)


def test_without_api_access_nothing_is_sent(
    service: RunningService, api: Api, receiver: Receiver
) -> None:
    service.add_webhook(receiver.url)
    code = api.created()
    service.set_account(plan="none", at_once=False)  # the call itself still goes by what it knew
    assert api.http.delete(f"/shares/{code}").status_code == 200
    assert (service.deliveries(), receiver.hooks, len(service.events())) == ([], [], 1)


TAKEN = [
    "https://example.com",
    "https://example.com:8443/a?b=c",
    "https://127.0.0.1/",
    "http://127.0.0.1:1/x",
]
TAKEN += [
    "http://[::1]/",
    "https://[2001:db8::abcd]/x",
    "http://localhost/",
    "http://[::1]:9/",
    "http://127.8.8.8/",
    "HTTPS://EXAMPLE.COM/",
]
REFUSED = [
    "",
    "x",
    7,
    None,
    [],
    "http://example.com/",
    "http://10.0.0.1/",
    "ftp://127.0.0.1/",
    "https://",
    "https:///x",
]
REFUSED += [
    "https://user:pw@example.com/",
    "https://example.com/#x",
    "https://example.com:99999/",
    "//example.com/",
]
REFUSED += [
    "http://127.0.0.1.example.com/",
    "http://localhost.example.com/",
    "http://127.1/",
    "http://0.0.0.0/",
]
REFUSED += [
    "https://ex ample.com/",
    "https://example.com/\r\nX: y",
    "https://ex\u00e4mple.com/",
    "file:///etc/passwd",
]
REFUSED += [
    "https://example.com:0/",
    "https://[::1/",
    "https://example.com/" + "a" * 2048,
    "javascript:alert(1)",
]


@pytest.mark.parametrize("url", TAKEN)
def test_an_endpoint_is_https_or_http_on_this_machine(service: RunningService, url: str) -> None:
    assert service.add_webhook(url).url == url


@pytest.mark.parametrize("url", REFUSED, ids=repr)
def test_and_nothing_else(service: RunningService, url: object) -> None:
    status, told = control_client.send_request(
        service.origin, "POST", "/rehearsal/webhooks", {"url": url}
    )
    assert (status, list(told["members"])) == (400, ["url"])
    assert control_client.list_webhooks(service.origin)["webhooks"] == []


def test_a_secret_is_shown_once_and_is_in_no_list_repr_or_log(
    service: RunningService, api: Api, receiver: Receiver
) -> None:
    webhook = service.add_webhook(receiver.url)
    rotated = service.rotate_webhook(webhook.id)
    deleted(api)
    assert len(service.deliveries()) == 1
    told = "".join(
        json.dumps(control_client.call_control_api(service.origin, "GET", path))
        for path in ("/webhooks", "/log", "/keys")
    )
    told += repr(
        (webhook, rotated, service.deliveries(), service.seen(), service.events(), service.notes())
    )
    told += json.dumps(
        control_client.call_control_api(service.origin, "GET", "/webhooks/deliveries")
    )
    assert webhook.id in told
    for secret in (webhook.secret.reveal(), rotated.secret.reveal()):
        assert len(secret) == len("whsec_") + 43
        assert secret not in told


# -- in nobody's way -------------------------------------------------------------------------------


def test_an_endpoint_that_says_nothing_holds_up_neither_the_delete_nor_another(
    service: RunningService, api: Api, receiver: Receiver
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        service.add_webhook(f"http://127.0.0.1:{silent.getsockname()[1]}/")
        came: queue.Queue[Asked] = queue.Queue()
        receiver.answers = lambda hook: came.put(hook) or 204  # type: ignore[func-returns-value]
        service.add_webhook(receiver.url)
        with stopwatch() as seconds:
            codes = [deleted(api) for _ in range(3)]
            assert seconds() < webhook_post.READ_SECONDS / 2
        assert [came.get(timeout=PATIENCE).body for _ in codes] == [payload(code) for code in codes]


def test_an_ipv6_address_without_a_port_is_no_port_and_holds_up_no_other(
    service: RunningService, api: Api, receiver: Receiver
) -> None:
    service.add_webhook("https://[::ffff:127.0.0.1]/")
    service.add_webhook(receiver.url)
    deleted(api)
    nobody_there, ours = service.deliveries()
    assert (nobody_there.state, nobody_there.attempts, ours.state) == ("waiting", 1, "delivered")
    connections = [
        webhook_post.WebhookPost(f"{scheme}://[::1]/", b"", {})._connection
        for scheme in ("http", "https")
    ]
    assert [(each.host, each.port) for each in connections] == [("::1", 80), ("::1", 443)]


def test_half_an_answer_is_none(
    service: RunningService, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_post, "TOTAL_SECONDS", 0.3)
    with closing(socket.create_server(("127.0.0.1", 0))) as slow:
        service.add_webhook(f"http://127.0.0.1:{slow.getsockname()[1]}/")
        deleted(api)
        connection, _ = slow.accept()
        connection.sendall(b"HTTP/1.1 200 OK\r\nX-Header: that never ends")
        [delivery] = service.deliveries()
        assert (delivery.state, delivery.attempts, delivery.answered) == (
            "waiting",
            1,
            "TimeoutError",
        )
        connection.close()


def test_the_service_ends_at_once_though_an_endpoint_says_nothing(
    caller: Callable[..., Api],
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        with start() as running:
            running.add_webhook(f"http://127.0.0.1:{silent.getsockname()[1]}/")
            deleted(caller(running))
            connection, _ = silent.accept()
            with stopwatch() as seconds:
                running.stop()
                assert seconds() < webhook_post.READ_SECONDS / 2
        connection.close()


def test_an_answer_that_was_lost_changes_nothing_of_the_event(
    service: RunningService, api: Api, receiver: Receiver
) -> None:
    service.add_webhook(receiver.url)
    code = api.created()
    service.set_faults(
        {
            "when": "DELETE /shares/*",
            "fault": "error",
            "status": 500,
            "code": 42,
            "after_commit": True,
        }
    )
    assert api.http.delete(f"/shares/{code}").status_code == 500
    assert [each.state for each in service.deliveries()] == ["delivered"]
    assert [hook.body for hook in receiver.hooks] == [payload(code)]


def test_a_database_that_refuses_once_ends_no_thread_that_sends(
    service: RunningService, api: Api, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = service.service.store
    lease, refused = store.lease_delivery, list[bool]()

    def lease_later() -> Row | None:
        if not refused:
            refused.append(True)
            raise DatabaseError("the database refused a statement")
        return lease()

    monkeypatch.setattr(store, "lease_delivery", lease_later)
    service.add_webhook(receiver.url)
    deleted(api)
    wait_for(lambda: receiver.hooks)
    assert refused


# -- again and again -------------------------------------------------------------------------------


def test_what_is_not_taken_is_sent_again_by_the_services_clock(
    service: RunningService, api: Api, receiver: Receiver
) -> None:
    answers = iter([500, None, 302, 404, 204])
    receiver.answers = lambda _: next(answers)
    receiver.headers = {"Location": receiver.url}
    webhook = service.add_webhook(receiver.url)
    code = deleted(api)
    found, signed = [], []
    for seconds in (0, *BACKOFF[:4]):
        service.advance(seconds - 1 if seconds else 0)
        (early,) = service.deliveries()
        service.advance(1 if seconds else 0)
        (delivery,) = service.deliveries()
        assert delivery.attempts == early.attempts + (1 if seconds else 0), (
            "not a second before it is due"
        )
        found.append((delivery.state, delivery.answered))
        signed.append(verified(service, receiver.hooks[-1], webhook))
    assert found == [
        ("waiting", "500"),
        ("waiting", "RemoteDisconnected"),
        ("waiting", "302"),
        ("waiting", "404"),
        ("delivered", "204"),
    ]
    assert [hook.body for hook in receiver.hooks] == [payload(code)] * 5
    assert sorted(set(signed)) == signed, "each attempt is signed anew, at its own time"
    service.advance(DAY)
    assert len(receiver.hooks) == len(service.deliveries()) + 4


def test_after_the_last_attempt_the_operator_gets_a_note(service: RunningService, api: Api) -> None:
    webhook = service.add_webhook(f"http://127.0.0.1:{silent_port()}/")
    deleted(api)
    for seconds in BACKOFF:
        assert service.deliveries()[0].state == "waiting"
        service.advance(seconds)
    (delivery,) = service.deliveries()
    assert (delivery.state, delivery.attempts, delivery.due) == ("given-up", len(BACKOFF) + 1, None)
    assert delivery.answered == "ConnectionRefusedError"
    assert [(note.what, note.about) for note in service.notes()] == [
        ("webhook.given-up", webhook.id)
    ]
    (told,) = control_client.list_webhooks(service.origin)["webhooks"]
    assert told["deliveries"] == {"given-up": 1}


def test_what_waits_survives_a_restart(
    tmp_path: Path, caller: Callable[..., Api], receiver: Receiver
) -> None:
    receiver.answers = lambda _: 503
    with start(state=tmp_path / "state") as running:
        webhook = running.add_webhook(receiver.url)
        code = deleted(caller(running))
        assert [each.state for each in running.deliveries()] == ["waiting"]
    receiver.answers = lambda _: 204
    with start(state=tmp_path / "state") as running:
        running.advance(BACKOFF[0])
        assert [(each.state, each.attempts) for each in running.deliveries()] == [("delivered", 2)]
        assert [hook.body for hook in receiver.hooks] == [payload(code)] * 2
        assert verified(running, receiver.hooks[-1], webhook)


def test_a_removed_endpoint_gets_nothing_more(
    service: RunningService, api: Api, receiver: Receiver
) -> None:
    receiver.answers = lambda _: 503
    webhook = service.add_webhook(receiver.url)
    deleted(api)
    assert len(service.deliveries()) == 1
    service.remove_webhook(webhook.id)
    service.advance(DAY)
    deleted(api)
    assert (service.deliveries(), len(receiver.hooks)) == ([], 1)


# -- signed ----------------------------------------------------------------------------------------


@pytest.mark.spec("gap.webhook-signature")
def test_after_a_rotation_both_secrets_sign_for_24_hours(
    service: RunningService, api: Api, receiver: Receiver
) -> None:
    first = service.add_webhook(receiver.url)

    def sent() -> Asked:
        deleted(api)
        assert service.deliveries()[-1].state == "delivered"
        return receiver.hooks[-1]

    def digests(hook: Asked) -> int:
        return hook.headers[first.header.lower()].count("v1=")

    assert digests(sent()) == 1
    second = service.rotate_webhook(first.id)
    old, new = first.secret.reveal(), second.secret.reveal()
    assert old != new
    for _ in range(2):
        hook = sent()
        assert digests(hook) == 2
        for secrets in ([old], [new], [new, old]):
            assert verified(service, hook, first, *secrets)
        with pytest.raises(WebhookError):
            verified(service, hook, first, "whsec_another")
        service.advance(DAY - PATIENCE)
    service.advance(PATIENCE)
    hook = sent()
    assert digests(hook) == 1
    assert verified(service, hook, second)
    with pytest.raises(WebhookError) as refused:
        verified(service, hook, first)
    assert refused.value.reason == "no-match"


def test_a_second_rotation_forgets_the_first_secret(
    service: RunningService, api: Api, receiver: Receiver
) -> None:
    made = [service.add_webhook(receiver.url)]
    made += [service.rotate_webhook(made[0].id) for _ in range(2)]
    deleted(api)
    assert service.deliveries()
    (hook,) = receiver.hooks
    assert hook.headers[made[0].header.lower()].count("v1=") == 2
    assert all(verified(service, hook, each) for each in made[1:])
    with pytest.raises(WebhookError):
        verified(service, hook, made[0])


def test_the_headers_name_is_the_services_to_choose(
    caller: Callable[..., Api], receiver: Receiver
) -> None:
    with start(signature_header="X-Acme-Signature") as running:
        webhook = running.add_webhook(receiver.url)
        deleted(caller(running))
        assert running.deliveries()
        assert webhook.header == "X-Acme-Signature"
        assert verified(running, receiver.hooks[0], webhook)
    with pytest.raises(ValueError, match="a header's name"):
        start(signature_header="X-Acme: x\r\nY")


def test_https_goes_only_to_a_server_with_a_valid_certificate(
    service: RunningService, api: Api, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    bundle = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(bundle))
    with Receiver(tls=context) as receiver:
        service.add_webhook(receiver.url)
        webhook_post.tls_context.cache_clear()
        code = deleted(api)
        assert service.deliveries()[0].answered == "SSLCertVerificationError"
        monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
        webhook_post.tls_context.cache_clear()
        service.advance(BACKOFF[0])
        assert [each.state for each in service.deliveries()] == ["delivered"]
        assert [hook.body for hook in receiver.hooks] == [payload(code)]
    webhook_post.tls_context.cache_clear()
