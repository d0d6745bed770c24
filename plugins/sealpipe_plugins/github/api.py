"""GitHub, and GitHub Enterprise Server."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar

from sealpipe.plugin import Context, NotConfiguredError, Secret, UnavailableError
from sealpipe.plugin.settings import PluginSettings
from sealpipe_plugins.http_api import Endpoint
from sealpipe_plugins.http_errors import Refusals, require_success
from sealpipe_plugins.http_reply import Reply


class GitHubSettings(PluginSettings):
    """`api_url` is https://HOST/api/v3 for GitHub Enterprise Server.

    `public` allows public repositories.
    """

    token: Secret | None = None
    api_url: str = "https://api.github.com"
    public: bool = False

    own_variables: ClassVar[Mapping[str, str]] = {
        "token": "GITHUB_TOKEN",
        "api_url": "GITHUB_API_URL",
    }


class GitHub:
    """The REST API, version 2022-11-28."""

    def __init__(self, settings: GitHubSettings, context: Context) -> None:
        if settings.token is None:
            raise NotConfiguredError(
                "no GitHub token is set",
                remedy="set GITHUB_TOKEN, or the setting token of the store",
            )
        headers: dict[str, str | Secret] = {
            "accept": "application/vnd.github+json",
            "authorization": Secret(f"Bearer {settings.token.reveal()}"),
            "x-github-api-version": "2022-11-28",
        }
        self._endpoint = Endpoint(
            context, "GitHub", settings.api_url, setting="api_url", headers=headers
        )

    def check_token(self) -> None:
        """Read the token's rate limit, which does not count against it. Raises BackendAuthError."""
        self.get("/rate_limit")

    def get(self, path: str, refusals: Refusals | None = None) -> Reply:
        """Send a GET request."""
        return _require_success(self._endpoint.get(path), refusals)

    def post(self, path: str, members: dict[str, str], refusals: Refusals | None = None) -> Reply:
        """Send a POST request, once."""
        return _require_success(self._endpoint.post(path, members), refusals)

    def put(
        self, path: str, members: Mapping[str, Any], refusals: Refusals | None = None, *, once: bool
    ) -> Reply:
        """Send a PUT request. With `once`, raises UnknownOutcomeError if the outcome is unknown."""
        return _require_success(self._endpoint.put(path, members, writes=once), refusals)


def _require_success(reply: Reply, refusals: Refusals | None) -> Reply:
    # GitHub may report either of its rate limits with 403, which otherwise means AccessDeniedError.
    if reply.status in (403, 429):
        is_exhausted = reply.headers.get("x-ratelimit-remaining") == "0"
        if is_exhausted or "retry-after" in reply.headers:
            wait = reply.retry_after
            reset = reply.headers.get("x-ratelimit-reset", "")
            if wait is None and is_exhausted and reset.isascii() and reset.isdigit():
                wait = max(0.0, int(reset[:12]) - time.time())
            raise UnavailableError(
                f"GitHub's rate limit is reached ({reply.status})", retry_after=wait
            )
    return require_success(reply, refusals)
