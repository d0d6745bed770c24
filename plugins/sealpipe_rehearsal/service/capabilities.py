"""What a key and its plan can do: GET /v1/capabilities (gaps: newer endpoints; `extended` only)."""

from __future__ import annotations

from . import listing
from .context import Call
from .etag import tagged
from .refusals import Answer
from .rules import FIELD_TYPES, NOTIFY_ON

NO_LIMIT = -1
API_VERSION = "1"


def show(call: Call) -> Answer:
    """GET /v1/capabilities: no scope is needed; -1 is no limit."""
    key, account, service = call.key, call.account, call.service
    limits = account.limits
    with service.store.transaction():
        listing.settle(service)
        live = listing.count(service, "shares", key.space)["live"]
    told = {
        "api_version": API_VERSION,
        "key": {
            "key_id": key.key_id,
            "scopes": sorted(key.scopes),
            "custody_level": key.custody_level,
            "organization_id": key.organization,
            "rate_limit_rpm": limits.requests_per_minute or 0,
        },
        "plan": {"code": account.plan, "name": account.plan.capitalize()},
        "limits": {
            "max_shares": NO_LIMIT if limits.shares is None else limits.shares,
            "remaining_shares": NO_LIMIT if limits.shares is None else max(0, limits.shares - live),
            "max_fields": NO_LIMIT,
            "max_days_access_logs": limits.access_log_days,
            "max_api_keys": limits.api_keys,
            "max_webhooks": limits.webhooks,
        },
        "features": {
            "secure_requests": True,
            "view_protection": limits.view_protection,
            "zero_knowledge": account.stores_wraps,
        },
        "sharing_policy": None,
        "field_types": list(FIELD_TYPES),
        "notify_on_events": list(NOTIFY_ON),
    }
    return tagged(call, told)
