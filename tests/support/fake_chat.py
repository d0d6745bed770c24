"""Fakes of Slack and Teams, written from their public documentation.

Slack: chat.postMessage, auth.test and incoming webhooks. Teams: a workflow answers 202, a connector
200.
"""

from __future__ import annotations

from typing import Any

from support.fake_web import Asked, FakeWeb, Reply

TOKEN = "xoxb-17653672481-19874698323-pdFZKVeTuE8sk7oOcHrzqqgy"
HOOK = "/services/T024BE7LD/B024BE7LH/XXaaaaXXbbbbXXccccXXdddd"


class FakeSlack(FakeWeb):
    """A workspace: channels by name and id, members by id.

    `messages` is what was posted, with the channel's id.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.channels = {"ops": "C024BE91L", "secret": "G024BE91X", "old": "C000000OLD"}
        self.joined = {"C024BE91L"}
        self.archived = {"C000000OLD"}
        self.members = {"U024BE7LH": "D024BFF1M"}
        self.scopes = {"chat:write"}
        self.messages: list[dict[str, Any]] = []

    @property
    def api_url(self) -> str:
        return f"{self.base_url}/api"

    @property
    def webhook_url(self) -> str:
        return f"{self.base_url}{HOOK}"

    def answer(self, asked: Asked) -> Reply:
        if asked.path.startswith("/services/"):
            return self._hook(asked)
        token = asked.headers.get("authorization", "").removeprefix("Bearer ") or asked.members.get(
            "token", ""
        )
        if not token:
            return Reply(200, {"ok": False, "error": "not_authed"})
        if token != TOKEN:
            return Reply(200, {"ok": False, "error": "invalid_auth"})
        if asked.path == "/api/auth.test":
            return Reply(
                200,
                {
                    "ok": True,
                    "url": "https://a.slack.com/",
                    "team": "A",
                    "user": "bot",
                    "user_id": "U1",
                },
            )
        if asked.path == "/api/chat.postMessage":
            return Reply(200, self._post(asked.members))
        return Reply(200, {"ok": False, "error": "unknown_method"})

    def _post(self, sent: dict[str, Any]) -> dict[str, Any]:
        asked_for = sent.get("channel", "")
        channel = self.members.get(asked_for) or self.channels.get(
            asked_for.removeprefix("#"), asked_for
        )
        known = {*self.channels.values(), *self.members.values()}
        error = (
            "missing_scope"
            if "chat:write" not in self.scopes
            else "channel_not_found"
            if channel not in known
            else "is_archived"
            if channel in self.archived
            else "not_in_channel"
            if channel not in {*self.joined, *self.members.values()}
            else "no_text"
            if not sent.get("text") and not sent.get("blocks")
            else "msg_too_long"
            if len(sent.get("text", "")) > 40_000
            else None
        )
        if error:
            return {"ok": False, "error": error}
        self.messages.append({**sent, "channel": channel})
        return {
            "ok": True,
            "channel": channel,
            "ts": f"1503435956.{len(self.messages):06}",
            "message": sent,
        }

    def _hook(self, asked: Asked) -> Reply:
        if asked.path != HOOK:
            return Reply(404, "no_service")
        if not asked.members.get("text"):
            return Reply(400, "no_text")
        self.messages.append({**asked.members, "channel": "C024BE91L"})
        return Reply(200, "ok")


WORKFLOW = (
    "/workflows/0f3a/triggers/manual/paths/invoke"
    "?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sig=Sig-7Hc9"
)
CONNECTOR = "/webhookb2/a1b1@9d7/IncomingWebhook/4f2c/d1e5"


class FakeTeams(FakeWeb):
    """`cards` is what was posted, each with where."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.cards: list[tuple[str, dict[str, Any]]] = []

    def answer(self, asked: Asked) -> Reply:
        if asked.target not in (WORKFLOW, CONNECTOR):
            return Reply(401, {"error": {"code": "DirectApiAuthorizationRequired"}})
        if len(asked.body) > 28 * 1024:
            return Reply(413, "")
        message = asked.json
        attachment = message["attachments"][0]
        if (
            message["type"] != "message"
            or attachment["contentType"] != "application/vnd.microsoft.card.adaptive"
        ):
            return Reply(400, "Bad payload received by generic incoming webhook.")
        self.cards.append((asked.target, attachment["content"]))
        return Reply(202) if asked.target == WORKFLOW else Reply(200, "1")
