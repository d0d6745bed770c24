"""The settings and the HTTP client of Shelf, for the source, the sink and the channel."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import httpx
from sealpipe.plugin import (
    AccessDeniedError,
    BackendAuthError,
    Context,
    NotConfiguredError,
    PluginError,
    Secret,
    SecretNotFoundError,
    UnavailableError,
    UnknownOutcomeError,
)
from sealpipe.plugin.settings import PluginSettings


class ShelfSettings(PluginSettings):
    """The address of Shelf and the token for it."""

    url: str
    token: Secret

    own_variables = {"url": "SHELF_URL", "token": "SHELF_TOKEN"}


NO_HEADERS: Mapping[str, str] = MappingProxyType({})

REFUSALS: dict[int, tuple[type[PluginError], str, str]] = {
    401: (BackendAuthError, "Shelf refused the token", "get a new one, and set SHELF_TOKEN"),
    403: (AccessDeniedError, "the token is not allowed to do that", "ask the owner of the shelf"),
    404: (SecretNotFoundError, "no such item on the shelf", "check the name"),
    412: (UnavailableError, "another writer was faster", "run it again"),
}
"""For each status: the error, the reason and what to do. Never text from the response."""


class Shelf:
    """A client for Shelf that raises the errors of the contract."""

    def __init__(self, settings: ShelfSettings, context: Context) -> None:
        self._settings = settings
        self._context = context

    def call(
        self, method: str, path: str, json: Any = None, headers: Mapping[str, str] = NO_HEADERS
    ) -> httpx.Response:
        """Send one request.

        If a write has an unknown outcome, raise UnknownOutcomeError, not UnavailableError.
        """
        url = self._settings.url + path
        headers = {**headers, "authorization": f"Bearer {self._settings.token.reveal()}"}
        try:
            http = self._context.network.http()  # with the user's proxy and certificates
            response = http.request(method, url, headers=headers, json=json)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError):
            raise UnavailableError("Shelf cannot be reached", remedy="check its address") from None
        except httpx.TransportError:
            lost = UnavailableError if method == "GET" else UnknownOutcomeError
            raise lost("Shelf did not respond completely") from None
        if response.status_code in REFUSALS:
            error, reason, remedy = REFUSALS[response.status_code]
            raise error(reason, remedy=remedy)
        if response.status_code in (429, 503):
            wait = response.headers.get("retry-after", "")
            raise UnavailableError(
                "Shelf is busy", retry_after=float(wait) if wait.isdecimal() else None
            )
        if response.is_redirect:  # never followed: whoever is there would get the token
            raise NotConfiguredError("Shelf responded with a redirect", remedy="correct SHELF_URL")
        if not response.is_success:
            raise PluginError(f"Shelf responded with status {response.status_code}")
        return response
