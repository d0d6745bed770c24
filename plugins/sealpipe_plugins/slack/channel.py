"""slack:#ops, slack:@U024BE7LH, slack:C024BE91L by a bot; slack: or slack:NAME by a webhook."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from sealpipe.plugin import (
    AccessDeniedError,
    BackendAuthError,
    Channel,
    Context,
    Delivery,
    Health,
    Message,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    Secret,
    SecretNotFoundError,
    UnavailableError,
    UnknownOutcomeError,
    UnsupportedError,
)
from sealpipe_plugins.http_api import Endpoint
from sealpipe_plugins.http_errors import CHECK_FIRST, require_success
from sealpipe_plugins.http_reply import Reply
from sealpipe_plugins.incoming_webhooks import NAME_PATTERN, WebhookSettingsBase
from sealpipe_plugins.wording import as_mrkdwn, is_link, split_lines, subject_line


class SlackSettings(WebhookSettingsBase):
    """`token` is a bot's (xoxb-...) and can post to any channel; a webhook posts to the channel it
    was created for.
    """

    token: Secret | None = None
    api_url: str = "https://slack.com/api"

    own_variables: ClassVar[Mapping[str, str]] = {
        "token": "SLACK_BOT_TOKEN",
        "webhook_url": "SLACK_WEBHOOK_URL",
    }


def make_api(settings: SlackSettings, context: Context, token: Secret) -> Endpoint:
    """Return the Web API."""
    headers: dict[str, str | Secret] = {"authorization": Secret(f"Bearer {token.reveal()}")}
    return Endpoint(context, "Slack", settings.api_url, setting="api_url", headers=headers)


_TO: Final = re.compile(r"#[\w-]{1,80}|@?[UW][A-Z0-9]{5,20}|[CGD][A-Z0-9]{5,20}")


class SlackChannel(Channel):
    """Slack, with link previews switched off, because a preview would open the link."""

    settings: SlackSettings

    def validate(self, to: str) -> None:
        """Check for a channel, a member, or a configured webhook."""
        self._open_endpoint(to)

    def canonical(self, to: str) -> str:
        """Return a member with the @.

        For several webhooks with the same address, the first name.
        """
        if _TO.fullmatch(to):
            return f"@{to}" if to[0] in "UW" else to
        return self.settings.first_name(to)

    def send(self, message: Message, to: str) -> Delivery:
        """Send by chat.postMessage, or by a webhook, which returns no id."""
        endpoint, body = self._open_endpoint(to), _make_body(message)
        if not _TO.fullmatch(to):
            reply = endpoint.post("", body)
            word = reply.body.decode("ascii", "replace").strip()
            if reply.status >= 400 and word in _BY_WORD:
                raise _error_for_word(word, reply)
            if require_success(reply).body.strip() != b"ok":
                raise _not_slack_error()
            return Delivery()
        response = _require_ok(
            endpoint.post("/chat.postMessage", {"channel": to.removeprefix("@"), **body})
        )
        return Delivery(id=f"{response.get('channel', '')}/{response.get('ts', '')}")

    def check(self) -> Health:
        """Check the token; a webhook cannot be checked."""
        if self.settings.token is None:
            has_webhook = self.settings.has_webhooks()
            return Health(
                ok=has_webhook,
                detail="webhooks cannot be checked"
                if has_webhook
                else "neither token nor webhook is set",
            )
        response = _require_ok(self._open_api().post("/auth.test", {}, writes=False))
        return Health(
            ok=True, detail=f"as {response.get('user', '?')} of {response.get('team', '?')}"
        )

    def _open_endpoint(self, to: str) -> Endpoint:
        if _TO.fullmatch(to):
            return self._open_api()
        if to and not re.fullmatch(NAME_PATTERN, to):
            raise ReferenceValueError(
                (
                    "the recipient is neither a channel (#ops) nor a member's id (@U024BE7LH) "
                    "nor a webhook's name"
                ),
                remedy="write only one of these",
            )
        return self.settings.open_endpoint(
            self.context,
            "Slack",
            to,
            hint=f"; a channel is written slack:#{to}",
            missing_remedy="name a channel, slack:#ops, or set SLACK_WEBHOOK_URL",
        )

    def _open_api(self) -> Endpoint:
        if self.settings.token is None:
            variable = (
                self.context.get_variable("token") if self.context.named else "SLACK_BOT_TOKEN"
            )
            raise NotConfiguredError(
                "Slack has no bot token",
                remedy=(
                    f"set {variable} to it; slack: alone uses the unnamed webhook, slack:NAME "
                    "a named one"
                ),
            )
        return make_api(self.settings, self.context, self.settings.token)


def _make_body(message: Message) -> dict[str, Any]:
    """Return the message as blocks without markup, and as text for notifications."""
    elements: list[dict[str, Any]] = []
    for number, line in enumerate(split_lines(message)):
        if number:
            elements.append({"type": "text", "text": "\n"})
        for segment in line:
            if segment.secret and is_link(segment.text):
                elements.append({"type": "link", "url": segment.text})
            else:
                style = {"style": {"code": True}} if segment.secret else {}
                elements.append({"type": "text", "text": segment.text, **style})
    section = {"type": "rich_text_section", "elements": elements}
    return {
        "text": as_mrkdwn(message) or subject_line(message),
        "blocks": [{"type": "rich_text", "elements": [section]}],
        "mrkdwn": False,
        "unfurl_links": False,
        "unfurl_media": False,
    }


def _require_ok(reply: Reply) -> dict[str, Any]:
    """Return a successful response. Slack responds 200 even to most errors."""
    response = reply.json
    error = response.get("error") if isinstance(response, dict) else None
    if isinstance(error, str) and response.get("ok") is False and reply.status < 500:
        raise _error_for_word(error, reply)
    require_success(reply)
    if not isinstance(response, dict) or response.get("ok") is not True:
        raise _not_slack_error()
    return response


def _not_slack_error() -> PluginError:
    return UnknownOutcomeError("the server is not Slack", remedy=CHECK_FIRST)


def _error_for_word(word: str, reply: Reply) -> PluginError:
    kind, reason, remedy = _BY_WORD.get(
        word, (PluginError, "refused the message", "look up the word in Slack's documentation")
    )
    safe_word = word if re.fullmatch(r"[a-z_]{1,48}", word) else "an unknown word"
    if kind is UnavailableError:
        return UnavailableError(
            f"Slack {reason} ({safe_word})", remedy=remedy, retry_after=reply.retry_after
        )
    return kind(f"Slack {reason} ({safe_word})", remedy=remedy)


_TOKEN: Final = (
    BackendAuthError,
    "refused the token",
    "check that it is a complete bot token of an installed app",
)
_WEBHOOK: Final = (
    SecretNotFoundError,
    "no longer knows this webhook",
    "create a new one and set it",
)
_LATER: Final = (UnavailableError, "asks to try again later", "")
_UNKNOWN_OUTCOME: Final = (UnknownOutcomeError, "failed after the message was sent", CHECK_FIRST)
_FORBIDDEN: Final = (
    AccessDeniedError,
    "does not allow this here",
    "ask an administrator of the workspace",
)
_UNSUPPORTED: Final = (UnsupportedError, "cannot show this message", "shorten the message")

_BY_WORD: Final[dict[str, tuple[type[PluginError], str, str]]] = {
    **dict.fromkeys(("invalid_auth", "not_authed", "token_revoked", "token_expired",
        "account_inactive"), _TOKEN),
    **dict.fromkeys(("ratelimited", "rate_limited", "service_unavailable", "team_added_to_org"),
        _LATER),
    **dict.fromkeys(("internal_error", "fatal_error"), _UNKNOWN_OUTCOME),
    **dict.fromkeys(("no_service", "no_service_id", "no_active_hooks", "no_team", "invalid_token"),
        _WEBHOOK),
    **dict.fromkeys(
        ("msg_too_long", "msg_blocks_too_long", "invalid_blocks", "invalid_payload", "no_text"),
        _UNSUPPORTED
    ),
    **dict.fromkeys(
        ("restricted_action", "restricted_action_read_only_channel",
            "restricted_action_thread_only_channel",
         "action_prohibited", "ekm_access_denied", "access_denied", "no_permission",
         "org_login_required",
         "posting_to_general_channel_denied", "team_access_not_granted"),
        _FORBIDDEN,
    ),
    "channel_not_found": (
        SecretNotFoundError, "has no such channel, or hides it",
        "check its name; invite the bot if private"
    ),
    "user_not_found": (SecretNotFoundError, "has no such member",
        "check the id, as the member's profile shows it"),
    "not_in_channel": (AccessDeniedError, "does not have the bot in that channel",
        "invite it: /invite @its-name"),
    "is_archived": (AccessDeniedError, "has archived that channel", "name another"),
    "channel_is_archived": (AccessDeniedError, "has archived that channel", "name another"),
    "missing_scope": (
        AccessDeniedError, "did not give this token the scope",
        "add the scope chat:write and install the app again"
    ),
    "cannot_dm_bot": (AccessDeniedError, "does not allow a bot to write to a bot", "name a person"),
    "messages_tab_disabled": (AccessDeniedError, "does not allow messages to this member",
        "name another"),
}  # fmt: skip
