"""Azure Pipelines: masks, outputs, summary, annotations and the token of a service connection."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar, Final
from urllib.parse import urlencode

from sealpipe.plugin import (
    SET_SECRET,
    BackendAuthError,
    Level,
    NotConfiguredError,
    PluginError,
    RunnerCommand,
    Secret,
    UnsupportedError,
    is_stderr_readable,
)
from sealpipe.plugin.settings import PluginSettings
from sealpipe_plugins.ci import JobCI, name_variable, write_masks, write_text

_LEVELS: Final[dict[Level, str]] = {"error": "error", "warning": "warning", "notice": "warning"}
"""The agent's log levels."""

_ENDPOINT: Final = "Azure's token endpoint"
_API_VERSION: Final = "7.1"


class AzureCISettings(PluginSettings):
    """`service_connection` is the ID of the service connection that the token is for.

    The tasks AzureCLI and AzurePowerShell set it in their scripts.
    """

    service_connection: str = ""

    own_variables: ClassVar[dict[str, str]] = {
        "service_connection": "AZURESUBSCRIPTION_SERVICE_CONNECTION_ID"
    }


class AzureCI(JobCI):
    """A job of Azure Pipelines. Its agent reads commands from both streams."""

    def mask(self, values: Iterable[Secret]) -> None:
        """Write mask commands to stderr, if the agent reads it."""
        write_masks(self, SET_SECRET, values)

    def set_output(self, name: str, value: str) -> None:
        """Set an output variable of the step, in capitals, by a command on stderr."""
        if not is_stderr_readable():
            raise PluginError("stderr does not reach the agent")
        command = RunnerCommand(
            self.job.output.format(name=name_variable(name, "the step's variables")),
            SET_SECRET.percent,
        )
        write_text(command.format(value))

    def summary(self, markdown: str) -> None:
        """Upload a file with the summary from the job's temporary folder (the agent empties it)."""
        folder = self.context.environ.get("AGENT_TEMPDIRECTORY")
        if not folder or not is_stderr_readable():
            raise UnsupportedError(
                "AGENT_TEMPDIRECTORY is not set here", remedy="run it in a step of a job"
            )
        file = Path(folder) / f"sealpipe-{secrets.token_hex(8)}.md"
        self.context.new_file(file, markdown.encode("utf-8", "replace"))
        write_text(RunnerCommand("##vso[task.uploadsummary]", SET_SECRET.percent).format(str(file)))

    def annotate(self, level: Level, message: str) -> None:
        """Log an issue, which the run's page displays."""
        write_text(
            RunnerCommand(f"##vso[task.logissue type={_LEVELS[level]}]", SET_SECRET.percent).format(
                message
            )
        )

    def oidc_token(self, audience: str | None = None) -> Secret:
        """Request the token of the service connection."""
        from sealpipe_plugins.http_api import Endpoint, Headers  # httpx: only for a token
        from sealpipe_plugins.http_errors import require_success

        env = self.context.environ
        url, bearer = env.get(self.job.oidc), env.get("SYSTEM_ACCESSTOKEN")
        connection = self.settings.service_connection
        if not url or not bearer or not connection:
            lacking = (
                "SYSTEM_ACCESSTOKEN"
                if connection and url
                else "service_connection"
                if url
                else self.job.oidc
            )
            raise NotConfiguredError(
                f"this job of Azure Pipelines may not request an OIDC token: it has no {lacking}",
                remedy=(
                    f"{self.job.oidc_setup} (SEALPIPE_PLUGIN_AZURE__SERVICE_CONNECTION) to a "
                    "connection's ID"
                ),
            )
        headers: Headers = {
            "authorization": Secret(f"Bearer {bearer}"),
            "x-tfs-fedauthredirect": "Suppress",
        }
        endpoint = Endpoint(
            self.context, _ENDPOINT, Secret(url.rstrip("/")), setting=self.job.oidc, headers=headers
        )
        query = urlencode({"api-version": _API_VERSION, "serviceConnectionId": connection})
        reply = endpoint.post(f"?{query}", {}, writes=False)
        if 400 <= reply.status < 500 and reply.status != 429:
            raise BackendAuthError(
                f"{_ENDPOINT} responded with {reply.status}",
                remedy="check the ID of the service connection, and let the pipeline use it",
            )
        token = require_success(reply).member("oidcToken")
        if not isinstance(token, str) or not token:
            raise PluginError(f"{_ENDPOINT} responded without a token")
        return self.check_audience(token, audience, "the token of the service connection")
