"""`webhook:https://host/path`: a POST of JSON, signed as the service signs its own webhooks
(`gaps.md`).
"""

from __future__ import annotations

import hmac
import json
import re
import time
from collections.abc import Mapping
from datetime import UTC
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from pydantic import field_validator

from sealpipe.plugin import (
    AccessDeniedError,
    Channel,
    Context,
    Delivery,
    Message,
    NotConfiguredError,
    ReferenceValueError,
    Secret,
    SecretNotFoundError,
    UnknownOutcomeError,
    is_cleartext,
)
from sealpipe.plugin.settings import PluginSettings
from sealpipe_plugins.http_api import Endpoint
from sealpipe_plugins.http_errors import CHECK_FIRST, Refusals, require_success

MEMBERS: Final[Mapping[str, str]] = {
    "share": "link",
    "request": "link",
    "passcode": "passcode",
    "batch": "summary",
}

_REFUSED: Final = (
    AccessDeniedError,
    "refused the message",
    "check the address, and that both sides have the same secret",
)
_REDIRECTED: Final = (
    UnknownOutcomeError,
    "responded with a redirect, which is never followed",
    CHECK_FIRST,
)
REFUSALS: Final[Refusals] = {
    **{status: _REFUSED for status in range(400, 500) if status not in (408, 429)},
    **dict.fromkeys((404, 410), (SecretNotFoundError, "does not exist", "check the address")),
    # A server that redirects a POST this way may have accepted it; 307 and 308 state that it has
    # not.
    **dict.fromkeys((301, 302, 303), _REDIRECTED),
    408: (UnknownOutcomeError, "waited too long for the message", CHECK_FIRST),
}
"""The meaning of statuses other than 2xx."""


class WebhookSettings(PluginSettings):
    """How messages are signed."""

    secret: Secret | None = None
    secret_previous: Secret | None = None
    header: str = "X-Sealpipe-Signature"
    unsigned: bool = False

    @field_validator("header")
    @classmethod
    def _check_header(cls, header: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", header):
            raise ValueError("not a valid header name")
        return header


class WebhookChannel(Channel):
    """An HTTP endpoint, which accepts a message with a 2xx response."""

    def __init__(self, settings: WebhookSettings, context: Context) -> None:
        super().__init__(settings, context)
        if settings.secret is None and not settings.unsigned:
            raise NotConfiguredError(
                "the channel webhook has no secret to sign with",
                remedy=f"set {self.context.get_variable('secret')}, "
                "or its setting unsigned if the receiver does not verify the sender",
            )

    def validate(self, to: str) -> None:
        """Raise ReferenceValueError unless it is an https:// address, or http:// to loopback."""
        try:
            parts = urlsplit(to)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, 0
        if (
            not host
            or port == 0
            or parts.scheme not in ("http", "https")
            or not re.fullmatch(r"[!-~]+", to)
        ):
            raise ReferenceValueError(
                "the address is not an http(s) URL", remedy="write webhook:https://host/path"
            )
        if "@" in parts.netloc or "#" in to or "\\" in to:
            raise ReferenceValueError(
                "the address contains a user, a fragment or a \\ in it", remedy="leave that out"
            )
        if re.search(r"/(\.|%2e){1,2}(/|\?|$)", to, re.IGNORECASE):
            raise ReferenceValueError(
                "the path of the address contains . or ..", remedy="write the full path"
            )
        if is_cleartext(parts.scheme, host):
            raise ReferenceValueError(
                "http:// would send it unencrypted",
                remedy="use https://; http:// is only for loopback",
            )

    def canonical(self, to: str) -> str:
        """Return the address with scheme and host in lower case, and without a default port."""
        parts = urlsplit(to)
        default_port = {"http": ":80", "https": ":443"}[parts.scheme]
        return urlunsplit(parts._replace(netloc=parts.netloc.lower().removesuffix(default_port)))

    def send(self, message: Message, to: str) -> Delivery:
        """Send the message, without retries."""
        body = _make_body(message)
        headers: dict[str, str | Secret] = {
            # With keep-alive, a connection that the server closed could not be distinguished from a
            # broken one.
            "connection": "close",
        }
        if self.settings.secret is not None:
            headers[self.settings.header] = sign(
                body, self.settings.secret, self.settings.secret_previous
            )
        endpoint = Endpoint(
            self.context, "the webhook", Secret(to), setting="address", headers=headers, hidden=True
        )
        require_success(endpoint.request("POST", "", body, writes=True), REFUSALS)
        return Delivery()


def sign(body: bytes, *secrets: Secret | None, now: float | None = None) -> str:
    """Return `t=<unix>,v1=<hex>`, with another v1 for each additional secret."""
    timestamp = str(int(time.time() if now is None else now)).encode()
    keys = [secret.reveal_bytes() for secret in secrets if secret is not None]
    digests = [hmac.new(key, timestamp + b"." + body, "sha256").hexdigest() for key in keys]
    return ",".join([f"t={timestamp.decode()}", *(f"v1={digest}" for digest in digests)])


def _make_body(message: Message) -> bytes:
    expires_at = message.expires_at
    members = {
        "schema": 1,
        "event": message.what,
        "short_code": message.short_code,
        MEMBERS[message.what]: message.secret.reveal(),
        "title": message.title,
        "expires_at": None
        if expires_at is None
        else expires_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "text": message.text.reveal(),
    }
    return json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
