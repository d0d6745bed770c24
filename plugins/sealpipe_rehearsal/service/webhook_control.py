"""The control door's routes for webhooks: what the account's owner does in the signed-in app."""

from __future__ import annotations

from . import webhooks
from .account_control import members_of, name_of_account
from .clock import rfc3339_at
from .context import Incoming, Service
from .plans import DEFAULT_ACCOUNT
from .responses import Answer, answer
from .rules import Rule
from .webhook_deliveries import Delivery

_RULES = {"url": Rule(webhooks.endpoint_url, required=True), "account": Rule(name_of_account)}
_NONE = answer(404, {"message": "there is no such webhook endpoint"})


def list_all(service: Service, incoming: Incoming) -> Answer:  # noqa: ARG001  # one shape for the table
    """GET /rehearsal/webhooks: every endpoint, without its secret, and what became of what it was sent."""
    counts: dict[str, dict[str, int]] = {}
    for delivery in service.deliverer.all():
        of_one = counts.setdefault(delivery.webhook, {})
        of_one[delivery.state] = of_one.get(delivery.state, 0) + 1
    shown = [_shown(service, each) | {"deliveries": counts.get(each.id, {})} for each in webhooks.every(service.store)]
    return answer(200, {"webhooks": shown, "signature_header": service.signature_header})


def add(service: Service, incoming: Incoming) -> Answer:
    """POST /rehearsal/webhooks: the secret is in the answer, this once."""
    members = members_of(_RULES, incoming)
    account, now = members.get("account", DEFAULT_ACCOUNT), service.clock.timestamp()
    try:
        made = webhooks.add(
            service.store, account, members["url"], service.token_bytes(9), service.token_bytes(32), now
        )
    except webhooks.CapacityError as error:
        return answer(403, {"message": str(error)})
    return answer(201, _with_secret(service, made))


def remove(service: Service, incoming: Incoming, name: str) -> Answer:  # noqa: ARG001  # as above
    """DELETE /rehearsal/webhooks/{id}: nothing more is sent there."""
    return answer(200, {"id": name, "removed": True}) if webhooks.remove(service.store, name) else _NONE


def rotate(service: Service, incoming: Incoming, name: str) -> Answer:  # noqa: ARG001  # as above
    """POST /rehearsal/webhooks/{id}/rotate: a new secret, in the answer this once; both sign for 24 hours."""
    endpoint = webhooks.rotate(service.store, name, service.token_bytes(32), service.clock.timestamp())
    return _NONE if endpoint is None else answer(200, _with_secret(service, endpoint))


def deliveries(service: Service, incoming: Incoming) -> Answer:  # noqa: ARG001  # as above
    """GET /rehearsal/webhooks/deliveries: each, with its attempts and what the last of them was answered."""
    return answer(200, {"deliveries": [_told(each) for each in service.deliverer.all()]})


def _shown(service: Service, endpoint: webhooks.Endpoint) -> dict[str, object]:
    return {
        "id": endpoint.id,
        "account": endpoint.account,
        "url": endpoint.url,
        "created_at": endpoint.created_at,
        "rotated_at": endpoint.rotated_at,
        "both_secrets_until": rfc3339_at(endpoint.both_until(service.clock.timestamp())),
    }


def _with_secret(service: Service, endpoint: webhooks.Endpoint) -> dict[str, object]:
    return _shown(service, endpoint) | {"secret": endpoint.secret, "signature_header": service.signature_header}


def _told(delivery: Delivery) -> dict[str, object]:
    return {
        "webhook": delivery.webhook,
        "body": delivery.body.decode("utf-8"),
        "state": delivery.state,
        "attempts": delivery.attempts,
        "answered": delivery.answered,
        "due": rfc3339_at(delivery.due),
    }
