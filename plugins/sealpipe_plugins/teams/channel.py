"""teams: and teams:NAME, a card sent by a webhook."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from sealpipe.plugin import (
    Delivery,
    Message,
    UnavailableError,
    UnknownOutcomeError,
    UnsupportedError,
)
from sealpipe_plugins.http_errors import CHECK_FIRST, require_success
from sealpipe_plugins.incoming_webhooks import WebhookChannel, WebhookSettingsBase
from sealpipe_plugins.wording import Segment, is_link, split_lines, subject_line


class TeamsSettings(WebhookSettingsBase):
    """Webhooks: one unnamed, and any number of named ones."""

    own_variables: ClassVar[Mapping[str, str]] = {"webhook_url": "TEAMS_WEBHOOK_URL"}


MAX_MESSAGE: Final = 28 * 1024
"""Maximum bytes of a card in Teams."""


class TeamsChannel(WebhookChannel):
    """A webhook of a workflow or a connector, for one channel. It returns no id."""

    system = "Teams"
    scheme = "teams"

    def send(self, message: Message, to: str) -> Delivery:
        """Send an Adaptive Card."""
        endpoint = self.open_endpoint(to)
        body = _make_card(message)
        if len(json.dumps(body)) > MAX_MESSAGE:
            raise UnsupportedError("Teams rejects messages of more than 28 KB", remedy="shorten it")
        reply = require_success(endpoint.post("", body))
        # A connector responds 200 even to a failure; the body then says so.
        if reply.status == 200 and b"HTTP error 429" in reply.body:
            raise UnavailableError(
                "Teams asks to try again later (429)", retry_after=reply.retry_after
            )
        if reply.status == 200 and b"failed" in reply.body:
            raise UnknownOutcomeError("Teams could not pass the message on", remedy=CHECK_FIRST)
        return Delivery()


def _make_card(message: Message) -> dict[str, Any]:
    """Return rich text without markup, and a button for the link."""
    heading = {
        "type": "TextRun",
        "text": _escape_template(subject_line(message)),
        "weight": "Bolder",
    }
    body: list[dict[str, Any]] = [{"type": "RichTextBlock", "inlines": [heading]}]
    after_gap = True
    for line in split_lines(message):
        if line:
            runs = [_make_run(segment) for segment in line]
            body.append(
                {
                    "type": "RichTextBlock",
                    "inlines": runs,
                    "spacing": "Medium" if after_gap else "None",
                }
            )
        after_gap = not line
    secret = message.secret.reveal()
    actions = (
        [{"type": "Action.OpenUrl", "title": "Open", "url": secret}] if is_link(secret) else []
    )
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
        "actions": actions,
    }
    kind = "application/vnd.microsoft.card.adaptive"
    return {
        "type": "message",
        "attachments": [{"contentType": kind, "contentUrl": None, "content": card}],
    }


def _make_run(segment: Segment) -> dict[str, Any]:
    if segment.secret:
        return {"type": "TextRun", "text": segment.text, "fontType": "Monospace"}
    return {"type": "TextRun", "text": _escape_template(segment.text)}


def _escape_template(text: str) -> str:
    """Insert an invisible character into `{{DATE(...)}}`, which a card would expand."""
    return re.sub(r"\{(?=\{)", "{\u2060", text)
