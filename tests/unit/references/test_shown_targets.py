"""What messages call a target: all of it, but for what may be a credential in an address."""

import pytest

from sealpipe.delivery.recipients import Recipient, plan_delivery
from sealpipe.reference import parse_target

SHOWN = {
    "email:kim@example.com?subject=x": "email:kim@example.com?subject=x",
    "slack:#ops-and-a-number-0123456789": "slack:#ops-and-a-number-0123456789",
    "webhook:https://host.example/a/b": "webhook:https://host.example/a/b",
    "webhook:https://host.example": "webhook:https://host.example",
    "webhook:https://host.example/a?token=t0ken": "webhook:https://host.example/a?***",
    "webhook:https://host.example?t0ken": "webhook:https://host.example?***",
    "webhook:https://host.example/a#t0ken?x": "webhook:https://host.example/a#***",
    "hook-store:HTTPS://host.example/a?for={who}": "hook-store:HTTPS://host.example/a?***",
    "webhook:https://kim:t0ken@host.example/a": "webhook:https://***@host.example/a",
    "webhook:https://host.example/hooks/T0KEN-0123456789ab/x": (
        "webhook:https://host.example/hooks/***/x"
    ),
    "webhook:https://host.example/notifications-of-the-team/x": (
        "webhook:https://host.example/notifications-of-the-team/x"
    ),
    "webhook:https://host.example/bot123456789:AAF-t0ken/send": (
        "webhook:https://host.example/***/send"
    ),
    "webhook:https://host.example/0123456789abcdef@tenant/x": "webhook:https://host.example/***/x",
    "webhook:https://host.example/a/T0KEN%2B0123456789+/=": "webhook:https://host.example/a/***/=",
    "webhook:https://host.example/aTokenWithoutDigits/x": "webhook:https://host.example/***/x",
    "webhook:https:/host.example/T0KEN-0123456789ab": "webhook:https:/host.example/***",
    "webhook:https:host.example/T0KEN-0123456789ab?t0ken": "webhook:https:host.example/***?***",
    "webhook:https:\\\\host.example\\T0KEN-0123456789ab": "webhook:https:\\\\host.example\\***",
    "webhook:https://host.example/{who}": "webhook:https://host.example/{who}",
}


@pytest.mark.parametrize("target", SHOWN)
def test_an_address_is_shown_without_what_may_be_a_credential(target: str) -> None:
    assert str(parse_target(target)) == SHOWN[target]


def test_neither_does_a_repr_show_it() -> None:
    """A bug's report, a log and a debugger print what their variables' reprs say."""
    target = parse_target("webhook:https://host.example/a?token=t0ken")
    recipient = Recipient("link", target.name, target.to, str(target))
    assert repr(target) == "Target(webhook:https://host.example/a?***)"
    assert repr(recipient) == "Recipient(link to webhook:https://host.example/a?***)"
    plan = plan_delivery([target], [], {}, None, with_passcode=False)
    assert "t0ken" not in repr(plan)
