"""A fake of Teams' webhooks, written from Microsoft's public documentation: a workflow answers 202, a connector 200."""

from __future__ import annotations

from typing import Any

from support.fake_web import Asked, FakeWeb, Reply

WORKFLOW = (
    "/workflows/0f3a/triggers/manual/paths/invoke?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sig=Sig-7Hc9"
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
        if message["type"] != "message" or attachment["contentType"] != "application/vnd.microsoft.card.adaptive":
            return Reply(400, "Bad payload received by generic incoming webhook.")
        self.cards.append((asked.target, attachment["content"]))
        return Reply(202) if asked.target == WORKFLOW else Reply(200, "1")
