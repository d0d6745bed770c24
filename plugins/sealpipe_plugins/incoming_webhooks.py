"""Incoming webhooks of chats: Slack, Teams, Mattermost, Discord.

Each has a name; their addresses are secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Final

from pydantic import BeforeValidator, Field

from sealpipe.plugin import (
    Channel,
    Context,
    Health,
    NotConfiguredError,
    ReferenceValueError,
    Secret,
)
from sealpipe.plugin.settings import PluginSettings
from sealpipe_plugins.http_api import Endpoint

NAME_PATTERN: Final = r"[a-z][a-z0-9_.-]{0,63}"
"""The characters of a webhook's name."""


def _parse_webhooks(value: object) -> dict[str, Secret]:
    """Parse the setting `webhooks`: NAME=URL, several separated by white space."""
    if isinstance(value, dict):
        return value
    webhooks: dict[str, Secret] = {}
    for each in str(value).split():
        name, equals, url = each.partition("=")
        if not equals or not url or not re.fullmatch(NAME_PATTERN, name) or name in webhooks:
            raise ValueError("not NAME=URL, or a repeated name")
        webhooks[name] = Secret(url)
    return webhooks


class WebhookSettingsBase(PluginSettings):
    """`webhook_url` is the unnamed webhook, `webhooks` are the named ones."""

    webhook_url: Secret | None = None
    webhooks: Annotated[dict[str, Secret], BeforeValidator(_parse_webhooks)] = Field(
        default_factory=dict
    )

    def has_webhooks(self) -> bool:
        """Return whether any webhook is configured."""
        return self.webhook_url is not None or bool(self.webhooks)

    def list_names(self) -> list[str]:
        """Return the names of all webhooks; the unnamed one's is empty."""
        return [*([] if self.webhook_url is None else [""]), *sorted(self.webhooks)]

    def first_name(self, name: str) -> str:
        """Return the first name of this webhook's address; the unnamed webhook sorts first."""
        unnamed: Mapping[str, Secret] = {} if self.webhook_url is None else {"": self.webhook_url}
        by_name = {**unnamed, **dict(sorted(self.webhooks.items()))}
        return next((each for each, url in by_name.items() if url == by_name.get(name)), name)

    def open_endpoint(
        self,
        context: Context,
        system: str,
        name: str,
        *,
        hint: str = "",
        missing_remedy: str,
        query: str = "",
    ) -> Endpoint:
        """Return the webhook with a name (empty: the unnamed one).

        `query` joins its address, `hint` the remedy.

        Raises NotConfiguredError for an unknown name, ReferenceValueError if a name is required.
        """
        url = self.webhooks.get(name) if name else self.webhook_url
        if url is None and name:
            others = f"configured are {', '.join(sorted(self.webhooks))}; " if self.webhooks else ""
            raise NotConfiguredError(
                f"no webhook {name} is configured for {system}",
                remedy=f"{others}set {context.get_variable('webhooks')} to {name}=https://... "
                "(several are separated "
                f"by blanks){hint}",
            )
        if url is None:
            raise ReferenceValueError(
                "the recipient is missing, and no unnamed webhook is set", remedy=missing_remedy
            )
        if query:
            url = Secret(f"{url.reveal()}{'&' if '?' in url.reveal() else '?'}{query}")
        return Endpoint(
            context, system, url, setting="webhooks" if name else "webhook_url", hidden=True
        )


class WebhookChannel(Channel):
    """A channel whose recipients are webhooks only.

    `scheme:` is the unnamed one, `scheme:NAME` a named one.
    """

    settings: WebhookSettingsBase
    system: ClassVar[str]
    """The product's name in messages."""
    scheme: ClassVar[str]
    query: ClassVar[str] = ""
    """Parameters that join each webhook's address."""

    def validate(self, to: str) -> None:
        """Check for a configured webhook."""
        self.open_endpoint(to)

    def canonical(self, to: str) -> str:
        """For several webhooks with the same address, return the first name."""
        return self.settings.first_name(to)

    def check(self) -> Health:
        """Check that a webhook is configured; calling it would post a message."""
        has_webhook = self.settings.has_webhooks()
        return Health(
            ok=has_webhook,
            detail="webhooks cannot be checked" if has_webhook else "no webhook is set",
        )

    def open_endpoint(self, to: str) -> Endpoint:
        """Return the webhook of a recipient. Raises ReferenceValueError, NotConfiguredError."""
        if to and not re.fullmatch(NAME_PATTERN, to):
            raise ReferenceValueError(
                "the recipient is not the name of a webhook",
                remedy=f"write {self.scheme}: or {self.scheme}:NAME",
            )
        return self.settings.open_endpoint(
            self.context,
            self.system,
            to,
            missing_remedy=(
                f"name a webhook, {self.scheme}:NAME, or set "
                f"{self.settings.own_variables['webhook_url']}"
            ),
            query=self.query,
        )
