"""What each tool is called with in these tests: the scope that it needs, and arguments that it
takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sealpipe_rehearsal.running_service import RunningService
from service.callers import PUBLIC_KEY, Api

SCOPES = {
    "list_shares": "shares:read",
    "get_share": "shares:read",
    "list_webhooks": "shares:read",
    "create_share_via_browser": "shares:write",
    "expire_share": "shares:write",
    "rotate_webhook_secret": "shares:write",
    "request_secret_from": "requests:write",
    "share_stats": "stats:read",
}
"""The specification's table (POST /v1/mcp)."""

URL = "https://example.com/hook"


@dataclass(frozen=True)
class World:
    """A share and a webhook endpoint for the tools to work on."""

    code: str
    webhook_id: str

    def arguments(self, tool: str) -> dict[str, Any]:
        """Arguments with which a tool succeeds."""
        fields = [{"item": "Password", "type": "password"}]
        return {
            "list_shares": {"limit": 5},
            "get_share": {"short_code": self.code},
            "create_share_via_browser": {"title": "For the contractor"},
            "expire_share": {"short_code": self.code},
            "rotate_webhook_secret": {"webhook_id": self.webhook_id},
            "request_secret_from": {"title": "Vendor", "public_key": PUBLIC_KEY, "fields": fields},
        }.get(tool, {})


def world(service: RunningService, api: Api) -> World:
    service.set_account(api_keys=100)
    return World(api.created(), service.add_webhook(URL).id)


def check(service: RunningService, there: World, tool: str, told: dict[str, Any]) -> None:
    """What a tool answered is what it did."""
    if tool == "list_shares":
        assert told["shares"] == [{"short_code": there.code, "expired_at": None}]
        assert told["pagination"]["limit"] == 5
    elif tool == "get_share":
        assert told == {"short_code": there.code, "expired_at": None}
    elif tool == "list_webhooks":
        assert [(each["id"], each["url"]) for each in told["webhooks"]] == [(there.webhook_id, URL)]
        assert "whsec_" not in str(told)
    elif tool == "create_share_via_browser":
        assert told["url"] == f"{service.link_base_url}/new?title=For%20the%20contractor"
    elif tool == "expire_share":
        assert told == {"success": True, "message": "ok"}
        assert [event.payload["short_code"] for event in service.events()] == [there.code]
    elif tool == "rotate_webhook_secret":
        row = service.service.database.row("SELECT secret FROM webhooks", {})
        assert row is not None
        assert (told["id"], told["secret"]) == (there.webhook_id, row["secret"])
        assert told["both_secrets_until"]
    elif tool == "request_secret_from":
        assert told["collect_link"] == f"{service.link_base_url}/r/{told['short_code']}"
        service.submitter().submit(told["collect_link"], {"Password": "s3cret"})
    else:
        assert told["shares"] == {"active": 1, "expired": 0, "total_viewed": 0}
        assert len(told["daily_views"]) == 14
