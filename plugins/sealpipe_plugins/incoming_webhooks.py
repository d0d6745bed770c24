"""Incoming webhooks of Slack and Teams, each with a name: their addresses are secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import BeforeValidator, Field

from sealpipe.plugin import Context, NotConfiguredError, ReferenceValueError, Secret
from sealpipe.plugin.settings import PluginSettings
from sealpipe_plugins.http_api import Endpoint

NAME_PATTERN: Final = r"[a-z][a-z0-9_.-]{0,63}"
"""What the name of a webhook is made of."""


def _parse_webhooks(value: object) -> dict[str, Secret]:
    """Read webhooks by name from a setting: NAME=URL, several separated by white space."""
    if isinstance(value, dict):
        return value
    webhooks: dict[str, Secret] = {}
    for each in str(value).split():
        name, equals, url = each.partition("=")
        if not equals or not url or not re.fullmatch(NAME_PATTERN, name) or name in webhooks:
            raise ValueError("not NAME=URL, or a name twice")
        webhooks[name] = Secret(url)
    return webhooks


class WebhookSettingsBase(PluginSettings):
    """`webhook_url` is the webhook without a name, `webhooks` are those with one."""

    webhook_url: Secret | None = None
    webhooks: Annotated[dict[str, Secret], BeforeValidator(_parse_webhooks)] = Field(default_factory=dict)

    def has_webhooks(self) -> bool:
        """Whether any is set."""
        return self.webhook_url is not None or bool(self.webhooks)

    def first_name(self, name: str) -> str:
        """Return the first name of this webhook's address; the one without a name comes before all others."""
        unnamed: Mapping[str, Secret] = {} if self.webhook_url is None else {"": self.webhook_url}
        by_name = {**unnamed, **dict(sorted(self.webhooks.items()))}
        return next((each for each, url in by_name.items() if url == by_name.get(name)), name)

    def open_endpoint(
        self, context: Context, system: str, name: str, *, unknown_remedy: str, missing_remedy: str
    ) -> Endpoint:
        """Return the webhook of a name (empty: the one without). The last two are the remedies.

        Raises NotConfiguredError for an unknown name, ReferenceValueError for none.
        """
        url = self.webhooks.get(name) if name else self.webhook_url
        if url is None and name:
            raise NotConfiguredError(f"no webhook {name} is configured for {system}", remedy=unknown_remedy)
        if url is None:
            raise ReferenceValueError("the recipient is missing, and no unnamed webhook is set", remedy=missing_remedy)
        return Endpoint(context, system, url, setting="webhooks" if name else "webhook_url", hidden=True)
