"""The control API for webhooks: what the account's owner does in the signed-in app."""

from __future__ import annotations

from sealpipe_service import webhooks
from sealpipe_service.clock import rfc3339_at
from sealpipe_service.context import HttpRequest
from sealpipe_service.json_bodies import Rule
from sealpipe_service.plans import DEFAULT_ACCOUNT
from sealpipe_service.responses import Response, json_response
from sealpipe_service.webhook_deliveries import WebhookDelivery

from .account_control import account_name, read_members
from .rehearsed import RehearsedService

_RULES = {"url": Rule(webhooks.endpoint_url, required=True), "account": Rule(account_name)}
_NOT_FOUND = json_response(404, {"message": "the webhook endpoint does not exist"})


def list_all(service: RehearsedService, http_request: HttpRequest) -> Response:  # noqa: ARG001
    """GET /rehearsal/webhooks: endpoints without secrets, and their deliveries' states."""
    counts: dict[str, dict[str, int]] = {}
    for delivery in service.deliverer.all():
        by_state = counts.setdefault(delivery.webhook, {})
        by_state[delivery.state] = by_state.get(delivery.state, 0) + 1
    endpoints = [
        _endpoint_json(service, each) | {"deliveries": counts.get(each.id, {})}
        for each in webhooks.endpoints(service.store)
    ]
    return json_response(200, {"webhooks": endpoints, "signature_header": service.signature_header})


def add(service: RehearsedService, http_request: HttpRequest) -> Response:
    """POST /rehearsal/webhooks: add an endpoint; only this response contains the secret."""
    members = read_members(_RULES, http_request)
    account = members.get("account", DEFAULT_ACCOUNT)
    try:
        endpoint = webhooks.add(
            service.store,
            account,
            members["url"],
            service.token_bytes(9),
            service.token_bytes(32),
            service.seals,
        )
    except webhooks.CapacityError as error:
        return json_response(403, {"message": str(error)})
    return json_response(201, _describe_with_secret(service, endpoint))


def remove(
    service: RehearsedService,
    http_request: HttpRequest,  # noqa: ARG001
    name: str,
) -> Response:
    """DELETE /rehearsal/webhooks/{id}: remove an endpoint; nothing more is sent to it."""
    return (
        json_response(200, {"id": name, "removed": True})
        if service.store.remove_webhook(name)
        else _NOT_FOUND
    )


def rotate(
    service: RehearsedService,
    http_request: HttpRequest,  # noqa: ARG001
    name: str,
) -> Response:
    """POST /rehearsal/webhooks/{id}/rotate: create a new secret, returned only once.

    Both sign for 24 hours.
    """
    endpoint = webhooks.rotate(service.store, name, service.token_bytes(32), service.seals)
    return (
        _NOT_FOUND
        if endpoint is None
        else json_response(200, _describe_with_secret(service, endpoint))
    )


def deliveries(service: RehearsedService, http_request: HttpRequest) -> Response:  # noqa: ARG001
    """GET /rehearsal/webhooks/deliveries: each delivery with its attempts and the last response."""
    return json_response(
        200, {"deliveries": [_delivery_json(each) for each in service.deliverer.all()]}
    )


def _endpoint_json(service: RehearsedService, endpoint: webhooks.Endpoint) -> dict[str, object]:
    return {
        "id": endpoint.id,
        "account": endpoint.account,
        "url": endpoint.url,
        "created_at": endpoint.created_at,
        "rotated_at": endpoint.rotated_at,
        "both_secrets_until": rfc3339_at(endpoint.previous_secret_until(service.clock.timestamp())),
    }


def _describe_with_secret(
    service: RehearsedService, endpoint: webhooks.Endpoint
) -> dict[str, object]:
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
