"""Slack: a bot's token, or incoming webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from sealpipe.plugin import Context, Secret
from sealpipe.plugin.settings import PluginSettings
from sealpipe_plugins.http_api import Endpoint
from sealpipe_plugins.webhook.settings import named


class SlackSettings(PluginSettings):
    """`token` is a bot's (xoxb-...) and posts to any channel; a webhook posts to the one that it was made for."""

    token: Secret | None = None
    webhook_url: Secret | None = None
    webhooks: Annotated[dict[str, Secret], BeforeValidator(named)] = Field(default_factory=dict)
    api_url: str = "https://slack.com/api"

    own_variables: ClassVar[Mapping[str, str]] = {"token": "SLACK_BOT_TOKEN", "webhook_url": "SLACK_WEBHOOK_URL"}


def api(settings: SlackSettings, context: Context, token: Secret) -> Endpoint:
    """The Web API."""
    headers: dict[str, str | Secret] = {"authorization": Secret(f"Bearer {token.reveal()}")}
    return Endpoint(context, "Slack", settings.api_url, setting="api_url", headers=headers)
