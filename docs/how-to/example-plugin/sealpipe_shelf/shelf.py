"""Shelf's settings and its HTTP interface, once for the source and the channel."""

from __future__ import annotations

from typing import Any

import httpx
from sealpipe.plugin import (
    AccessDeniedError,
    BackendAuthError,
    Context,
    PluginError,
    Secret,
    SecretNotFoundError,
    UnavailableError,
    UnknownOutcomeError,
)
from sealpipe.plugin.settings import PluginSettings


class ShelfSettings(PluginSettings):
    """Where Shelf is, and the token that opens it."""

    url: str
    token: Secret

    own_variables = {"url": "SHELF_URL", "token": "SHELF_TOKEN"}


REFUSALS: dict[int, tuple[type[PluginError], str, str]] = {
    401: (BackendAuthError, "Shelf does not take the token", "get a new one, and set SHELF_TOKEN"),
    403: (AccessDeniedError, "the token may not do that", "ask whose shelf it is"),
    404: (SecretNotFoundError, "there is no such thing on the shelf", "check the name"),
}
"""What a status means: the error, the reason, and what to do. Never anything of the answer itself."""


class Shelf:
    """Calls Shelf, and says in errors of the contract what came of it."""

    def __init__(self, settings: ShelfSettings, context: Context) -> None:
        self._settings = settings
        self._context = context

    def call(self, method: str, path: str, json: Any = None) -> httpx.Response:
        """One request. What writes is UnknownOutcomeError, not UnavailableError, where nobody knows whether it was
        taken."""
        headers = {"authorization": f"Bearer {self._settings.token.reveal()}"}
        try:
            http = self._context.network.http()  # with the user's proxy and certificates
            answer = http.request(method, self._settings.url + path, headers=headers, json=json)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError):
            raise UnavailableError("Shelf cannot be reached", remedy="check its address") from None
        except httpx.TransportError:
            lost = UnavailableError if method == "GET" else UnknownOutcomeError
            raise lost("Shelf did not answer to the end") from None
        if answer.status_code in REFUSALS:
            error, reason, remedy = REFUSALS[answer.status_code]
            raise error(reason, remedy=remedy)
        if answer.status_code in (429, 503):
            wait = answer.headers.get("retry-after", "")
            raise UnavailableError(
                "Shelf asks to come back later", retry_after=float(wait) if wait.isdecimal() else None
            )
        if not answer.is_success:
            raise PluginError(f"Shelf answered with {answer.status_code}")
        return answer
