"""The control API for webhooks: what the account's owner does in the signed-in app."""

from __future__ import annotations

from . import webhooks
from .account_control import account_name, read_members
from .clock import rfc3339_at
from .context import HttpRequest, Service
from .json_bodies import Rule
from .plans import DEFAULT_ACCOUNT
from .responses import Response, json_response
from .webhook_deliveries import WebhookDelivery

_RULES = {"url": Rule(webhooks.endpoint_url, required=True), "account": Rule(account_name)}
_NOT_FOUND = json_response(404, {"message": "the webhook endpoint does not exist"})


def list_all(service: Service, http_request: HttpRequest) -> Response:  # noqa: ARG001
    """GET /rehearsal/webhooks: endpoints without secrets, and their deliveries' states."""
    counts: dict[str, dict[str, int]] = {}
    for delivery in service.deliverer.all():
        by_state = counts.setdefault(delivery.webhook, {})
        by_state[delivery.state] = by_state.get(delivery.state, 0) + 1
    endpoints = [
        _endpoint_json(service, each) | {"deliveries": counts.get(each.id, {})}
        for each in webhooks.all_endpoints(service.store)
    ]
    return json_response(200, {"webhooks": endpoints, "signature_header": service.signature_header})


def add(service: Service, http_request: HttpRequest) -> Response:
    """POST /rehearsal/webhooks: add an endpoint; only this response contains the secret."""
    members = read_members(_RULES, http_request)
    account, now = members.get("account", DEFAULT_ACCOUNT), service.clock.timestamp()
    try:
        endpoint = webhooks.add(
            service.store,
            account,
            members["url"],
            service.token_bytes(9),
            service.token_bytes(32),
            now,
        )
    except webhooks.CapacityError as error:
        return json_response(403, {"message": str(error)})
    return json_response(201, _describe_with_secret(service, endpoint))


def remove(service: Service, http_request: HttpRequest, name: str) -> Response:  # noqa: ARG001
    """DELETE /rehearsal/webhooks/{id}: remove an endpoint; nothing more is sent to it."""
    return (
        json_response(200, {"id": name, "removed": True})
        if webhooks.remove(service.store, name)
        else _NOT_FOUND
    )


def rotate(service: Service, http_request: HttpRequest, name: str) -> Response:  # noqa: ARG001
    """POST /rehearsal/webhooks/{id}/rotate: create a new secret, returned only once.

    Both sign for 24 hours.
    """
    endpoint = webhooks.rotate(
        service.store, name, service.token_bytes(32), service.clock.timestamp()
    )
    return (
        _NOT_FOUND
        if endpoint is None
        else json_response(200, _describe_with_secret(service, endpoint))
    )


def deliveries(service: Service, http_request: HttpRequest) -> Response:  # noqa: ARG001
    """GET /rehearsal/webhooks/deliveries: each delivery with its attempts and the last response."""
    return json_response(
        200, {"deliveries": [_delivery_json(each) for each in service.deliverer.all()]}
    )


def _endpoint_json(service: Service, endpoint: webhooks.Endpoint) -> dict[str, object]:
    return {
        "id": endpoint.id,
        "account": endpoint.account,
        "url": endpoint.url,
        "created_at": endpoint.created_at,
        "rotated_at": endpoint.rotated_at,
        "both_secrets_until": rfc3339_at(endpoint.previous_secret_until(service.clock.timestamp())),
    }


def _describe_with_secret(service: Service, endpoint: webhooks.Endpoint) -> dict[str, object]:
    return _endpoint_json(service, endpoint) | {
        "secret": endpoint.secret,
        "signature_header": service.signature_header,
    }


def _delivery_json(delivery: WebhookDelivery) -> dict[str, object]:
    return {
        "webhook": delivery.webhook,
        "body": delivery.body.decode("utf-8"),
        "state": delivery.state,
        "attempts": delivery.attempts,
        "answered": delivery.answered,
        "due": rfc3339_at(delivery.due),
    }
