"""GitHub Actions: masks, outputs, summary, annotations and the job's OIDC token."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from sealpipe.plugin import (
    ADD_MASK,
    BackendAuthError,
    Level,
    NotConfiguredError,
    PluginError,
    Secret,
    UnsupportedError,
    format_output,
    make_annotation,
)
from sealpipe_plugins.ci import JobCI, write_masks, write_text

if TYPE_CHECKING:
    from sealpipe_plugins.http_reply import Reply

_ENDPOINT = "GitHub's token endpoint"


class GitHubCI(JobCI):
    """A job of GitHub Actions, Gitea Actions or Forgejo Actions."""

    def mask(self, values: Iterable[Secret]) -> None:
        """Write mask commands to stderr, if the runner reads it."""
        write_masks(self, ADD_MASK, values)

    def set_output(self, name: str, value: str) -> None:
        """Append to GITHUB_OUTPUT, with a random delimiter."""
        try:
            entry = format_output(name, value)
        except ValueError:
            raise PluginError(
                "this output cannot be written", remedy="use letters, digits and _ in its name"
            ) from None
        self._append(self.job.output, entry)

    def summary(self, markdown: str) -> None:
        """Append to GITHUB_STEP_SUMMARY."""
        self._append("GITHUB_STEP_SUMMARY", markdown.rstrip("\n") + "\n")

    def annotate(self, level: Level, message: str) -> None:
        """Write an annotation command to stderr, which the run's page shows."""
        write_text(make_annotation(level).format(message))

    def oidc_token(self, audience: str | None = None) -> Secret:
        """Request a token from the runner's token endpoint."""
        from sealpipe_plugins.http_api import Endpoint  # httpx: only for a token

        env = self.context.environ
        url, bearer = env.get(self.job.oidc), env.get("ACTIONS_ID_TOKEN_REQUEST_TOKEN")
        if not url or not bearer:
            raise NotConfiguredError(
                "this GitHub job may not request an OIDC token", remedy=self.job.oidc_setup
            )
        if audience is not None:
            url += ("&" if urlsplit(url).query else "?") + f"audience={quote(audience, safe='')}"
        headers = {"authorization": Secret(f"bearer {bearer}")}
        endpoint = Endpoint(
            self.context, _ENDPOINT, Secret(url), setting=self.job.oidc, headers=headers
        )
        return _read_token(endpoint.get(""), self.job.oidc_setup)

    def _append(self, variable: str, text: str) -> None:
        file = self.context.environ.get(variable)
        if not file:
            raise UnsupportedError(
                f"{variable} is not set here", remedy="run it in a step of a job"
            )
        with Path(file).open("a", encoding="utf-8") as stream:
            stream.write(text)


def _read_token(reply: Reply, remedy: str) -> Secret:
    from sealpipe_plugins.http_errors import require_success

    if 400 <= reply.status < 500 and reply.status != 429:
        raise BackendAuthError(f"{_ENDPOINT} responded with {reply.status}", remedy=remedy)
    value = require_success(reply).member("value")
    if not isinstance(value, str) or not value:
        raise PluginError(f"{_ENDPOINT} responded without a token")
    return Secret(value)
