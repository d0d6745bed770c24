"""The REST API of GitLab, on gitlab.com or self-managed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from sealpipe.plugin import Context, NotConfiguredError, Secret
from sealpipe.plugin.settings import PluginSettings
from sealpipe_plugins.http_api import Endpoint
from sealpipe_plugins.http_errors import Refusals, require_success
from sealpipe_plugins.http_reply import Reply


class GitLabSettings(PluginSettings):
    """`api_url` is `url` with /api/v4 unless set.

    `internal` notes are visible to members from Reporter on; `public` allows notes in public
    projects."""

    token: Secret | None = None
    url: str = "https://gitlab.com"
    api_url: str = ""
    internal: bool = True
    public: bool = False

    own_variables: ClassVar[Mapping[str, str]] = {
        "token": "GITLAB_TOKEN",
        "url": "CI_SERVER_URL",
        "api_url": "CI_API_V4_URL",
    }


class GitLab:
    """The REST API, version 4."""

    def __init__(self, settings: GitLabSettings, context: Context) -> None:
        if settings.token is None:
            raise NotConfiguredError(
                "no GitLab token is set",
                remedy="set GITLAB_TOKEN, or the setting token of the store, to an access token "
                "with the scope api (a job's own token, CI_JOB_TOKEN, cannot write notes or "
                "variables)",
            )
        url = settings.api_url or f"{settings.url.rstrip('/')}/api/v4"
        headers: dict[str, str | Secret] = {"private-token": settings.token}
        self._endpoint = Endpoint(
            context,
            "GitLab",
            url,
            setting="api_url" if settings.api_url else "url",
            headers=headers,
        )

    def version(self) -> str:
        """Return the server's version: this request needs a valid token but no permission."""
        return str(self.get("/version").member("version"))

    def get(self, path: str, refusals: Refusals | None = None) -> Reply:
        """Send a GET request."""
        return require_success(self._endpoint.get(path), refusals)

    def post(
        self, path: str, members: Mapping[str, Any], refusals: Refusals | None = None
    ) -> Reply:
        """Send a POST request, once."""
        return require_success(self._endpoint.post(path, members), refusals)

    def put(self, path: str, members: Mapping[str, Any], refusals: Refusals | None = None) -> Reply:
        """Send a PUT request."""
        return require_success(self._endpoint.put(path, members), refusals)
