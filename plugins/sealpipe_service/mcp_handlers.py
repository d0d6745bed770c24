"""The tools' handlers: each calls the handler of the corresponding route."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode

from . import requests, shares, webhooks
from .clock import rfc3339_at
from .context import Call
from .responses import Response, as_json, json_response

Arguments = Mapping[str, Any]

NO_WEBHOOK = "There is no such webhook endpoint"


def list_shares(call: Call, arguments: Arguments) -> Response:
    """GET /v1/shares."""
    query = {name: str(value) for name, value in arguments.items() if value is not None}
    return shares.list_shares(replace(call, http_request=replace(call.http_request, query=query)))


def get_share(call: Call, arguments: Arguments) -> Response:
    """GET /v1/shares/{shortCode}."""
    return shares.show(replace(call, codes=(arguments["short_code"],)))


def expire_share(call: Call, arguments: Arguments) -> Response:
    """DELETE /v1/shares/{shortCode}, with its event."""
    return shares.delete(replace(call, codes=(arguments["short_code"],)))


def share_stats(call: Call, arguments: Arguments) -> Response:  # noqa: ARG001
    """GET /v1/stats."""
    return shares.show_stats(call)


def create_share_via_browser(call: Call, arguments: Arguments) -> Response:
    """Return a URL where a person can create the share. The service has no page there."""
    parameters = {name: str(value) for name, value in arguments.items() if value is not None}
    query = f"?{urlencode(parameters, quote_via=quote)}" if parameters else ""
    return json_response(
        200,
        {"url": f"{_link_base(call)}/new{query}", "message": "Open this URL to create the share."},
    )


def request_secret_from(call: Call, arguments: Arguments) -> Response:
    """POST /v1/requests with a fresh idempotency key; adds the collect link."""
    key = ("idempotency-key", f"mcp-{call.service.token_bytes(16).hex()}")
    headers = (*(pair for pair in call.http_request.headers if pair[0] != key[0]), key)
    http_request = replace(call.http_request, headers=headers, body=as_json(dict(arguments)))
    response = requests.create(replace(call, http_request=http_request))
    created = json.loads(response.body)
    return json_response(
        response.status,
        created | {"collect_link": f"{_link_base(call)}/r/{quote(created['short_code'], safe='')}"},
    )


def list_webhooks(call: Call, arguments: Arguments) -> Response:  # noqa: ARG001
    """The webhook endpoints of the key's account."""
    endpoints = webhooks.endpoints(call.service.store, call.key.account)
    return json_response(
        200, {"webhooks": [_endpoint_json(call, endpoint) for endpoint in endpoints]}
    )


def rotate_webhook_secret(call: Call, arguments: Arguments) -> Response:
    """Create a new secret for one of the account's endpoints."""
    service, name = call.service, arguments["webhook_id"]
    endpoint = webhooks.find(service.store, name)
    if endpoint is None or endpoint.account != call.key.account:
        return json_response(404, {"message": NO_WEBHOOK})
    try:
        rotated = webhooks.rotate(service.store, name, service.token_bytes(32), service.seals)
    except webhooks.SealError:  # by whom the service is run, or nobody
        return json_response(409, {"message": "only the service's operator can do this now"})
    if rotated is None:  # removed in the meantime
        return json_response(404, {"message": NO_WEBHOOK})
    return json_response(200, _endpoint_json(call, rotated) | {"secret": rotated.secret})


def _endpoint_json(call: Call, endpoint: webhooks.Endpoint) -> dict[str, object]:
    return {
        "id": endpoint.id,
        "url": endpoint.url,
        "created_at": rfc3339_at(endpoint.created_at),
        "both_secrets_until": rfc3339_at(endpoint.previous_secret_until(call.now)),
    }


def _link_base(call: Call) -> str:
    """Return the base URL of links; a rehearsal's has the host name that the client used."""
    return f"{call.service.public_url or 'http://' + (call.http_request.header('host') or '')}/s"
