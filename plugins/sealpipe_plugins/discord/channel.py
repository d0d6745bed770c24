"""discord: and discord:NAME, a message sent by a webhook."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, Final

from sealpipe.plugin import (
    AccessDeniedError,
    BackendAuthError,
    Delivery,
    Health,
    Message,
    SecretNotFoundError,
    UnavailableError,
    UnknownOutcomeError,
    UnsupportedError,
)
from sealpipe_plugins.http_errors import CHECK_FIRST, Refusals, require_success
from sealpipe_plugins.http_reply import Reply
from sealpipe_plugins.incoming_webhooks import WebhookChannel, WebhookSettingsBase
from sealpipe_plugins.wording import as_markdown


class DiscordSettings(WebhookSettingsBase):
    """Webhooks: one unnamed, and any number of named ones."""

    own_variables: ClassVar[Mapping[str, str]] = {"webhook_url": "DISCORD_WEBHOOK_URL"}


MAX_MESSAGE: Final = 2000
"""Maximum characters of a message in Discord, escapes included; we count UTF-16, as its client
does.
"""
_LONGEST_WAIT: Final = 1e6
"""Seconds. What is longer is no time that Discord asks for."""
_SUPPRESS_EMBEDS: Final = 1 << 2
_REFUSALS: Final[Refusals] = {
    400: (
        UnsupportedError,
        "cannot show this message",
        "shorten the message; a forum needs ?thread_id= in the address",
    ),
    401: (
        BackendAuthError,
        "refused the webhook's token",
        "copy the webhook's whole address again",
    ),
    403: (
        AccessDeniedError,
        "does not let this machine post",
        "check the webhook's address, and the network's proxy",
    ),
    404: (SecretNotFoundError, "no longer knows this webhook", "create a new one and set it"),
}


class DiscordChannel(WebhookChannel):
    """A webhook of a channel.

    Previews are switched off, because a preview would open the link; nobody is mentioned.
    """

    system = "Discord"
    scheme = "discord"
    query = "wait=true"  # without it, Discord reports no error

    def send(self, message: Message, to: str) -> Delivery:
        """Send Markdown in which only the link is markup. `id` is the message's."""
        endpoint, content = self.open_endpoint(to), as_markdown(message)
        if len(content.encode("utf-16-le", "surrogatepass")) // 2 > MAX_MESSAGE:
            raise UnsupportedError(
                f"Discord rejects messages of more than {MAX_MESSAGE} characters",
                remedy="shorten it",
            )
        body = {"content": content, "allowed_mentions": {"parse": []}, "flags": _SUPPRESS_EMBEDS}
        reply = _require_accepted(endpoint.post("", body))
        identifier = reply.member("id")
        if not isinstance(identifier, str) or not re.fullmatch(r"[0-9]{1,20}", identifier):
            raise UnknownOutcomeError("the server is not Discord", remedy=CHECK_FIRST)
        return Delivery(id=identifier)

    def check(self) -> Health:
        """Check that each webhook exists. Posts nothing."""
        names = self.settings.list_names()
        for name in names:
            _require_accepted(self.open_endpoint(name).get(""))
        return Health(ok=True, detail="every webhook exists") if names else super().check()


def _require_accepted(reply: Reply) -> Reply:
    seconds = reply.member("retry_after")
    if reply.status == 429 and isinstance(seconds, int | float) and 0 <= seconds < _LONGEST_WAIT:
        raise UnavailableError(
            "Discord asks to try again later (429)",
            remedy="run it again later",
            retry_after=float(seconds),
        )
    return require_success(reply, _REFUSALS)
