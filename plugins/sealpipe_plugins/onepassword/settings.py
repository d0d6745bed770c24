"""Settings of 1Password, under the names that its users know."""

from __future__ import annotations

from pydantic import Field

from sealpipe.plugin import Secret
from sealpipe.plugin.settings import PluginSettings


class OnePasswordSettings(PluginSettings):
    """A Connect server's address and token, or the token of a service account; Connect comes first, as with `op`.

    `timeout` is in seconds, for what a service account asks.
    """

    connect_host: str = ""
    connect_token: Secret | None = None
    service_account_token: Secret | None = None
    timeout: float = Field(60.0, gt=0, le=600)

    own_variables = {  # noqa: RUF012 - a ClassVar of the base
        "connect_host": "OP_CONNECT_HOST",
        "connect_token": "OP_CONNECT_TOKEN",
        "service_account_token": "OP_SERVICE_ACCOUNT_TOKEN",
    }
