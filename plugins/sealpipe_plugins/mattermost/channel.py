"""mattermost: and mattermost:NAME, a message sent by an incoming webhook."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar, Final

from sealpipe.plugin import (
    AccessDeniedError,
    Delivery,
    Message,
    NotConfiguredError,
    SecretNotFoundError,
    UnknownOutcomeError,
    UnsupportedError,
)
from sealpipe_plugins.http_errors import CHECK_FIRST, Refusal, require_success
from sealpipe_plugins.http_reply import Reply
from sealpipe_plugins.incoming_webhooks import WebhookChannel, WebhookSettingsBase
from sealpipe_plugins.wording import as_markdown


class MattermostSettings(WebhookSettingsBase):
    """Webhooks: one unnamed, and any number of named ones."""

    own_variables: ClassVar[Mapping[str, str]] = {"webhook_url": "MATTERMOST_WEBHOOK_URL"}


MAX_MESSAGE: Final = 7000
"""Maximum characters of our JSON: an older server cuts off the rest without an error."""

_WEBHOOK: Final[Refusal] = (
    SecretNotFoundError,
    "does not know this webhook",
    "create a new one and set it",
)
_FORBIDDEN: Final[Refusal] = (
    AccessDeniedError, "does not let this webhook post there",
    "check its creator's access to the channel",
)  # fmt: skip
_UNSUPPORTED: Final[Refusal] = (UnsupportedError, "cannot show this message", "shorten the message")
_BY_ID: Final[Mapping[str, Refusal]] = {
    "web.incoming_webhook.invalid.app_error": _WEBHOOK,
    "web.incoming_webhook.disabled.app_error": (
        NotConfiguredError, "has incoming webhooks switched off",
        "ask an administrator to enable them",
    ),
    "web.incoming_webhook.channel.app_error": (
        SecretNotFoundError, "no longer has the webhook's channel",
        "choose another channel in the webhook",
    ),
    "app.channel.get.existing.app_error": (
        SecretNotFoundError, "no longer has the webhook's channel",
        "choose another channel in the webhook",
    ),
    "web.incoming_webhook.channel_locked.app_error": _FORBIDDEN,
    "web.incoming_webhook.permissions.app_error": _FORBIDDEN,
    "web.incoming_webhook.user.app_error": (
        AccessDeniedError, "no longer has the webhook's creator",
        "create the webhook as another user",
    ),
    "web.incoming_webhook.text.app_error": _UNSUPPORTED,
    "web.incoming_webhook.parse.app_error": _UNSUPPORTED,
    "web.incoming_webhook.split_props_length.app_error": _UNSUPPORTED,
}  # fmt: skip


class MattermostChannel(WebhookChannel):
    """A webhook of a channel. It returns no id."""

    system = "Mattermost"
    scheme = "mattermost"

    def send(self, message: Message, to: str) -> Delivery:
        """Send Markdown in which only the link is markup, as an attachment.

        Mattermost opens the first link of a post's own text for a preview, but none of an
        attachment's.
        """
        endpoint = self.open_endpoint(to)
        body = {
            "text": "",
            "attachments": [{"fallback": "A message from sealpipe", "text": as_markdown(message)}],
        }
        if len(json.dumps(body)) > MAX_MESSAGE:
            raise UnsupportedError(
                f"Mattermost cuts off messages of more than {MAX_MESSAGE} characters",
                remedy="shorten it",
            )
        reply = _require_accepted(endpoint.post("", body))
        if reply.body.strip() != b"ok":
            raise UnknownOutcomeError("the server is not Mattermost", remedy=CHECK_FIRST)
        return Delivery()


def _require_accepted(reply: Reply) -> Reply:
    refusal = _BY_ID.get(str(reply.member("id"))) if reply.status >= 400 else None
    return require_success(reply, None if refusal is None else {reply.status: refusal})
