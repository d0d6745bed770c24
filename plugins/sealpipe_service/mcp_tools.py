"""The eight tools as ONE table: name, scope, arguments and handler (specification: POST /v1/mcp).

The specification does not define arguments and results. Here the arguments have the API's names,
and a result is the route's response, as text and as `structuredContent`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import mcp_handlers as handlers
from .checks import SCHEMAS, count, filled_text, rfc3339, text
from .context import Call
from .json_bodies import REQUEST, Rule, rejected
from .responses import RefusalError, Response, as_json

Arguments = Mapping[str, Any]


@dataclass(frozen=True)
class Tool:
    """A row of the specification's tools.

    `hints` are the protocol's annotations; `about` describes arguments.
    """

    name: str
    scope: str
    description: str
    handler: Callable[[Call, Arguments], Response]
    arguments: Mapping[str, Rule] = field(default_factory=dict)
    about: Mapping[str, str] = field(default_factory=dict)
    hints: Mapping[str, bool] = field(default_factory=dict)

    def describe(self) -> dict[str, Any]:
        """Return the tool's entry in tools/list."""
        properties = {
            name: {
                **SCHEMAS[rule.check],
                **({"description": self.about[name]} if name in self.about else {}),
            }
            for name, rule in self.arguments.items()
        }
        required = [name for name, rule in self.arguments.items() if rule.required]
        schema: dict[str, Any] = {
            "type": "object",
            "properties": properties,
            "additionalProperties": False,
        }
        return {
            "name": self.name,
            "title": self.name.replace("_", " ").capitalize(),
            "description": f"{self.description} Needs the scope {self.scope}.",
            "inputSchema": {**schema, **({"required": required} if required else {})},
            "annotations": {"openWorldHint": False, **self.hints},
        }


def run(call: Call, tool: Tool, arguments: Arguments) -> dict[str, Any]:
    """Run a tool. A refusal, including a missing scope, is a result with `isError`."""
    if tool.scope not in call.key.scopes:
        return _failed(
            f"This API key lacks the scope {tool.scope}, which the tool {tool.name} needs."
        )
    unknown = {name: "is not known here" for name in arguments if name not in tool.arguments}
    if reasons := rejected(tool.arguments, arguments) | unknown:
        return _failed(f"{tool.name}: {_reasons(reasons)}")
    try:
        response = tool.handler(call, arguments)
    except RefusalError as refused:
        response = refused.response
    result = json.loads(response.body)
    if response.status >= 300:
        code = f" (error_code {result['error_code']})" if "error_code" in result else ""
        return _failed(f"{tool.name}: {result['message']}{code}")
    return {"content": _text(as_json(result).decode("utf-8")), "structuredContent": result}


def _failed(message: str) -> dict[str, Any]:
    return {"content": _text(message), "isError": True}


def _text(message: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": message}]


def _reasons(reasons: Mapping[str, str]) -> str:
    return "; ".join(f"{name} {reason}" for name, reason in reasons.items())


_READS = {"readOnlyHint": True}
_CREATES = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False}
_DELETES = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False}

_CODE = {"short_code": Rule(filled_text, required=True)}
_ABOUT_CODE = {"short_code": "The share's short code: opaque, as in the list."}
_ABOUT_PAGES = {"page": "Page, from 1.", "limit": "Shares per page: 25 by default, at most 100."}

TOOLS = (
    Tool(
        "list_shares",
        "shares:read",
        "The shares that can still be opened, newest first: metadata only.",
        handlers.list_shares,
        {"page": Rule(count), "limit": Rule(count)},
        _ABOUT_PAGES,
        _READS,
    ),
    Tool(
        "get_share",
        "shares:read",
        "One share's short code and expiry. Uses no view.",
        handlers.get_share,
        _CODE,
        _ABOUT_CODE,
        _READS,
    ),
    Tool(
        "list_webhooks",
        "shares:read",
        "The webhook endpoints that get this account's events, without their secrets.",
        handlers.list_webhooks,
        hints=_READS,
    ),
    Tool(
        "create_share_via_browser",
        "shares:write",
        (
            "A URL where a person creates and seals a share in the browser: no secret passes "
            "through this tool."
        ),
        handlers.create_share_via_browser,
        {
            "title": Rule(text),
            "description": Rule(text),
            "expired_at": Rule(rfc3339),
            "access_counts_left": Rule(count),
        },
        {"expired_at": "When it expires.", "access_counts_left": "How often it may be viewed."},
        _CREATES,
    ),
    Tool(
        "expire_share",
        "shares:write",
        "Expires a share at once. Its link stops working; this cannot be undone.",
        handlers.expire_share,
        _CODE,
        _ABOUT_CODE,
        _DELETES,
    ),
    Tool(
        "rotate_webhook_secret",
        "shares:write",
        (
            "Creates a new secret for a webhook endpoint, shown only once; the old one also "
            "signs for 24 hours."
        ),
        handlers.rotate_webhook_secret,
        {"webhook_id": Rule(filled_text, required=True)},
        {"webhook_id": "The endpoint's id, as list_webhooks returns it."},
        _DELETES,
    ),
    Tool(
        "request_secret_from",
        "requests:write",
        (
            "Creates a link to a form for secrets, which the submitter's browser seals to your "
            "public key."
        ),
        handlers.request_secret_from,
        REQUEST,
        {
            "title": "Shown to the submitter above the form.",
            "public_key": (
                "base64url of a 65-byte P-256 point; its private key opens submissions and "
                "stays with you."
            ),
            "fields": (
                "The fields of the form: `item` is the visible prompt, `type` such as text or "
                "password."
            ),
            "expired_at": "When the link expires: in 30 days by default.",
            "max_submission": "Maximum number of submissions.",
        },
        _CREATES,
    ),
    Tool(
        "share_stats",
        "stats:read",
        "Number of shares, and of their views in the last 14 days.",
        handlers.share_stats,
        hints=_READS,
    ),
)
