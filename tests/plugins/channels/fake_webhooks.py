"""Fakes of Mattermost and Discord: their incoming webhooks, written from public documentation.

Mattermost answers `ok` in plain text, errors as JSON with an id. Discord answers the message if
`wait=true`, else 204.
"""

from __future__ import annotations

from typing import Any

from support.fake_web import Asked, FakeWeb, Reply

MATTERMOST_HOOK = "/hooks/kq3canary7xjgpd6ro1mzfa9qh"
DISCORD_HOOK = "/api/webhooks/1195938472610394112/Canary-wEbHoOk_t0ken-9c41"


class FakeMattermost(FakeWeb):
    """A server with one webhook.

    `texts` are what was posted: a post's own text, and those of its attachments.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.posts: list[dict[str, Any]] = []

    @property
    def webhook_url(self) -> str:
        return f"{self.base_url}{MATTERMOST_HOOK}"

    def answer(self, asked: Asked) -> Reply:
        if asked.path != MATTERMOST_HOOK:
            return refusal("web.incoming_webhook.invalid.app_error", 400)
        sent = asked.json
        if not sent.get("text") and not sent.get("attachments"):
            return refusal("web.incoming_webhook.text.app_error", 400)
        self.posts.append(sent)
        return Reply(200, "ok")

    @property
    def texts(self) -> list[str]:
        return [
            "\n".join([post["text"], *(each["text"] for each in post["attachments"])])
            for post in self.posts
        ]


def refusal(identifier: str, status: int) -> Reply:
    """An error as Mattermost tells it: it quotes the webhook."""
    members = {
        "message": f"Invalid webhook {MATTERMOST_HOOK}",
        "detailed_error": "",
        "request_id": "x",
    }
    return Reply(status, {"id": identifier, **members, "status_code": status})


class FakeDiscord(FakeWeb):
    """A server with one webhook. `messages` is what was posted."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.messages: list[dict[str, Any]] = []

    @property
    def webhook_url(self) -> str:
        return f"{self.base_url}{DISCORD_HOOK}"

    def answer(self, asked: Asked) -> Reply:
        if asked.path.rpartition("/")[0] != DISCORD_HOOK.rpartition("/")[0]:
            return Reply(404, {"message": "Unknown Webhook", "code": 10015})
        if asked.path != DISCORD_HOOK:
            return Reply(401, {"message": "Invalid Webhook Token", "code": 50027})
        if asked.method == "GET":
            return Reply(
                200,
                {
                    "id": "1195938472610394112",
                    "name": "ops",
                    "token": DISCORD_HOOK.rpartition("/")[2],
                },
            )
        sent = asked.json
        if not 1 <= len(sent.get("content", "")) <= 2000:
            return Reply(400, {"message": "Invalid Form Body", "code": 50035, "errors": {}})
        self.messages.append(sent)
        if asked.query.get("wait", "").lower() != "true":
            return Reply(204)
        return Reply(200, {"id": f"12095938472610394{len(self.messages)}", "type": 0, **sent})


def limited(seconds: float) -> Reply:
    """Discord asks to wait, in its JSON exactly and in its header roughly."""
    members = {"message": "You are being rate limited.", "retry_after": seconds, "global": False}
    return Reply(429, members, {"Retry-After": str(round(seconds + 1)), "Via": "1.1 google"})
