"""Microsoft Teams: webhooks, of a workflow or of a connector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from sealpipe.plugin import Secret
from sealpipe.plugin.settings import PluginSettings
from sealpipe_plugins.webhook.settings import named


class TeamsSettings(PluginSettings):
    """Webhooks: one without a name, and any number with."""

    webhook_url: Secret | None = None
    webhooks: Annotated[dict[str, Secret], BeforeValidator(named)] = Field(default_factory=dict)

    own_variables: ClassVar[Mapping[str, str]] = {"webhook_url": "TEAMS_WEBHOOK_URL"}
