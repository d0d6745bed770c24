"""What the service sends during a rotation is taken, and thirty forgeries of it are each refused,
with the reason.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from sealpipe import WebhookError, webhooks
from sealpipe_rehearsal.running_service import RunningService
from sealpipe_rehearsal.server import start
from service.callers import Api
from support.damage import flipped
from support.fake_web import Receiver


@dataclass(frozen=True)
class Sent:
    """A webhook as it came in, the secrets that are current, and when it is looked at."""

    body: bytes
    header: str
    new: str
    old: str
    now: float

    @property
    def stamp(self) -> str:
        return self.header.partition(",")[0].removeprefix("t=")

    @property
    def digests(self) -> list[str]:
        return [part.removeprefix("v1=") for part in self.header.split(",")[1:]]

    def accepted(self) -> bool:
        return bool(webhooks.verify(self.body, self.header, [self.new, self.old], now=self.now))


@pytest.fixture(scope="module")
def sent() -> Iterator[Sent]:
    with start() as running, Receiver() as receiver:
        api = Api(running, running.create_key())
        first = running.add_webhook(receiver.url)
        second = running.rotate_webhook(first.id)
        code = api.created()
        api.http.delete(f"/shares/{code}").raise_for_status()
        api.http.close()
        assert running.deliveries()
        (hook,) = receiver.hooks
        header = hook.headers[first.header.lower()]
        now = running.service.clock.timestamp()
        yield Sent(hook.body, header, second.secret.reveal(), first.secret.reveal(), now)


def digest(key: str | bytes, signed: bytes, how: str = "sha256") -> str:
    return hmac.new(key.encode() if isinstance(key, str) else key, signed, how).hexdigest()


def under(key: str | bytes) -> Callable[[Sent], Sent]:
    """Signed right, with a key that is not one of the two."""
    return lambda sent: replace(
        sent, header=f"t={sent.stamp},v1={digest(key, sent.stamp.encode() + b'.' + sent.body)}"
    )


def over(signed: Callable[[Sent], bytes], how: str = "sha256") -> Callable[[Sent], Sent]:
    """The right secret, over something else than time, point and body."""
    return lambda sent: replace(
        sent, header=f"t={sent.stamp},v1={digest(sent.new, signed(sent), how)}"
    )


def body(change: Callable[[bytes], bytes]) -> Callable[[Sent], Sent]:
    """Another body under the same header."""
    return lambda sent: replace(sent, body=change(sent.body))


def header(change: Callable[[Sent], str]) -> Callable[[Sent], Sent]:
    """The same body under another header."""
    return lambda sent: replace(sent, header=change(sent))


def later(seconds: float) -> Callable[[Sent], Sent]:
    """The very webhook, looked at that much later: a replay."""
    return lambda sent: replace(sent, now=int(sent.stamp) + seconds)


FORGERIES: dict[str, tuple[Callable[[Sent], Sent], str]] = {
    "another short code": (body(lambda b: flipped(b, -3)), "no-match"),
    "another event": (body(lambda b: b.replace(b"share.deleted", b"share.created")), "no-match"),
    "one more member": (body(lambda b: b[:-1] + b',"reason":"x"}'), "no-match"),
    "a line end behind it": (body(lambda b: b + b"\n"), "no-match"),
    "a blank more, as when it is written again": (
        body(lambda b: b.replace(b":", b": ")),
        "no-match",
    ),
    "members in another order": (
        body(lambda b: b"{" + b",".join(reversed(b[1:-1].split(b","))) + b"}"),
        "no-match",
    ),
    "no body": (body(lambda _: b""), "no-match"),
    "half of the body": (body(lambda b: b[: len(b) // 2]), "no-match"),
    "the body twice": (body(lambda b: b + b), "no-match"),
    "a byte order mark before it": (body(lambda b: b"\xef\xbb\xbf" + b), "no-match"),
    "a secret of somebody else": (under("whsec_" + "A" * 43), "no-match"),
    "no secret": (under(b""), "no-match"),
    "the secret without its prefix": (lambda s: under(s.new.removeprefix("whsec_"))(s), "no-match"),
    "the secret decoded": (
        lambda s: under(base64.urlsafe_b64decode(s.new.removeprefix("whsec_") + "="))(s),
        "no-match",
    ),
    "the body alone signed": (over(lambda s: s.body), "no-match"),
    "the time behind the body": (over(lambda s: s.body + b"." + s.stamp.encode()), "no-match"),
    "no point between them": (over(lambda s: s.stamp.encode() + s.body), "no-match"),
    "another hash": (over(lambda s: s.stamp.encode() + b"." + s.body, "sha1"), "malformed-header"),
    "a hash that needs no secret": (
        header(
            lambda s: (
                f"t={s.stamp},v1={hashlib.sha256(s.stamp.encode() + b'.' + s.body).hexdigest()}"
            )
        ),
        "no-match",
    ),
    "a newer time under the old digests": (
        header(lambda s: s.header.replace(s.stamp, str(int(s.stamp) + 1), 1)),
        "no-match",
    ),
    "an older time under the old digests": (
        header(lambda s: s.header.replace(s.stamp, str(int(s.stamp) - 1), 1)),
        "no-match",
    ),
    "one digit of each digest changed": (
        header(
            lambda s: (
                f"t={s.stamp},"
                + ",".join(f"v1={'0' if d[0] != '0' else '1'}{d[1:]}" for d in s.digests)
            )
        ),
        "no-match",
    ),
    "digests cut short": (
        header(lambda s: f"t={s.stamp},v1={s.digests[0][:32]}"),
        "malformed-header",
    ),
    "the digests under another scheme": (
        header(lambda s: s.header.replace("v1=", "v0=")),
        "malformed-header",
    ),
    "the digests without their time": (
        header(lambda s: s.header.partition(",")[2]),
        "malformed-header",
    ),
    "a second time": (header(lambda s: f"{s.header},t={int(s.stamp) + 60}"), "malformed-header"),
    "no digest": (header(lambda s: f"t={s.stamp}"), "malformed-header"),
    "no header": (header(lambda _: ""), "missing-header"),
    "the very webhook, 301 seconds later": (later(301), "stale"),
    "the very webhook, from 301 seconds ahead": (later(-301), "stale"),
}


def test_what_the_service_sent_is_taken_under_both_secrets_and_within_300_seconds(
    sent: Sent,
) -> None:
    assert len(sent.digests) == 2
    for one in (
        sent,
        replace(sent, old=sent.new),
        replace(sent, new=sent.old),
        later(300)(sent),
        later(-300)(sent),
    ):
        assert one.accepted()


def test_there_are_thirty_and_no_two_are_the_same(sent: Sent) -> None:
    forged = {forge(sent) for forge, _ in FORGERIES.values()}
    assert len(FORGERIES) == len(forged) == 30
    assert sent not in forged


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_refused_with_its_reason(sent: Sent, name: str) -> None:
    forge, reason = FORGERIES[name]
    with pytest.raises(WebhookError) as refused:
        forge(sent).accepted()
    assert refused.value.reason == reason


def test_a_forger_without_the_secret_is_refused_where_the_true_one_is_taken(
    service: RunningService, api: Api
) -> None:
    """The receiver's own view: of two messages in its hands it acts on the one that the service
    sent.
    """
    with Receiver() as receiver:
        webhook = service.add_webhook(receiver.url)
        code = api.created()
        api.http.delete(f"/shares/{code}").raise_for_status()
        assert service.deliveries()
        (hook,) = receiver.hooks
        name = webhook.header.lower()
        assert webhooks.verify(hook.body, hook.headers[name], webhook.secret)
        with pytest.raises(WebhookError):
            webhooks.verify(
                hook.body.replace(code.encode(), b"another"), hook.headers[name], webhook.secret
            )
