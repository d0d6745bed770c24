"""Building blocks of the schemas in `openapi`, and the schemas of the `extended` endpoints."""

from __future__ import annotations

from collections.abc import Mapping

from . import extended
from .checks import SCHEMAS, Schema, filled_text, rfc3339
from .json_bodies import FIELD_TYPES_EXTENDED, NOTIFY_ON
from .listing import MAX_LIMIT
from .plans import NO_LIMIT

JSON = "application/json"
TEXT: Schema = SCHEMAS[filled_text]
TIME: Schema = SCHEMAS[rfc3339]
COUNT: Schema = {"type": "integer", "minimum": 0}


def or_null(schema: Schema) -> Schema:
    """Return the schema, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def object_with(**members: Schema) -> Schema:
    """Return an object with exactly these members, all required."""
    return {
        "type": "object",
        "properties": members,
        "required": [*members],
        "additionalProperties": False,
    }


def array_of(schema: Schema) -> Schema:
    """Return an array of items with this schema."""
    return {"type": "array", "items": schema}


def page_of(name: str, item: Schema) -> Schema:
    """Return the response of a list."""
    at_least_one = {"type": "integer", "minimum": 1}
    limit = {**at_least_one, "maximum": MAX_LIMIT}
    figures = object_with(page=at_least_one, limit=limit, total_pages=COUNT, total=COUNT)
    return object_with(**{name: array_of(item), "pagination": figures})


_ACCESS = object_with(
    accessed_at=TIME,
    accessed_ip=TEXT,
    platform=TEXT,
    user_agent=or_null({"type": "string"}),
    failed_passcode={"type": "boolean"},
    signed_in={"type": "boolean"},
)
LOG = object_with(
    short_code=TEXT,
    entries=array_of(_ACCESS),
    next_cursor=or_null(TEXT),
    retention_days=COUNT,
    effective_from=TIME,
    effective_to=TIME,
)
LOG_QUERY: Mapping[str, Schema] = {
    "limit": {
        "type": "integer",
        "minimum": 1,
        "maximum": extended.MAX_LIMIT,
        "default": extended.DEFAULT_LIMIT,
    },
    "cursor": {"type": "string"},
    "from": TIME,
    "to": TIME,
}
_OR_NONE: Schema = {"type": "integer", "minimum": NO_LIMIT}
_LIMITS = (
    "max_shares",
    "remaining_shares",
    "max_fields",
    "max_days_access_logs",
    "max_api_keys",
    "max_webhooks",
)
_CAPABILITIES = object_with(
    api_version=TEXT,
    key=object_with(
        key_id=TEXT,
        scopes=array_of(TEXT),
        custody_level={"enum": [0, 1, 2]},
        custody_public_key=or_null(TEXT),
        compromised={"type": "boolean"},
        organization_id=or_null(TEXT),
        rate_limit_rpm=_OR_NONE,
    ),
    plan=object_with(code=TEXT, name=TEXT),
    limits=object_with(**dict.fromkeys(_LIMITS, _OR_NONE)),
    features={"type": "object", "additionalProperties": {"type": "boolean"}},
    sharing_policy={"type": "null"},
    field_types=array_of({"enum": [*FIELD_TYPES_EXTENDED]}),
    notify_on_events=array_of({"enum": [*NOTIFY_ON]}),
)
CAPABILITIES: Schema = {
    **_CAPABILITIES,
    "properties": {
        **_CAPABILITIES["properties"],
        "service": object_with(name=TEXT, version=TEXT),  # only of a service of one's own
    },
}
