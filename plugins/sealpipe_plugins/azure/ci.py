"""Azure Pipelines: masks and annotations."""

from __future__ import annotations

from collections.abc import Iterable

from sealpipe.plugin import CI, SET_SECRET, Level, NotConfiguredError, Run, RunnerCommand, Secret, UnsupportedError
from sealpipe_plugins.ci import write_masks, write_text

_LEVELS: dict[Level, str] = {"error": "error", "warning": "warning", "notice": "warning"}
"""The agent's log levels."""


class AzureCI(CI):
    """A job of Azure Pipelines, detected by predefined variables. Its agent reads commands from both streams."""

    def run(self) -> Run:
        """Identify the run by collection, project, build and job."""
        env = self.context.environ
        collection, project = env.get("SYSTEM_COLLECTIONURI", ""), env.get("SYSTEM_TEAMPROJECT", "")
        build, job = env.get("BUILD_BUILDID", ""), env.get("SYSTEM_JOBID", "")
        url = f"{collection}{project}/_build/results?buildId={build}" if collection.startswith("https://") else ""
        return Run("azure", f"{collection}{project}/{build}/{job}", env.get("BUILD_REQUESTEDFOR", ""), url)

    def mask(self, values: Iterable[Secret]) -> None:
        """Write mask commands to stderr, if the agent reads it."""
        write_masks(self, SET_SECRET, values)

    def set_output(self, name: str, value: str) -> None:  # noqa: ARG002 - the contract's signature
        """Raise UnsupportedError: later steps get variables from the pipeline itself."""
        raise UnsupportedError("outputs are not set in Azure Pipelines", remedy="take it from stdout, or use --receipt")

    def summary(self, markdown: str) -> None:
        """Do nothing: a summary in Azure Pipelines is an uploaded file."""

    def annotate(self, level: Level, message: str) -> None:
        """Log an issue, which the run's page displays."""
        write_text(RunnerCommand(f"##vso[task.logissue type={_LEVELS[level]}]", SET_SECRET.percent).format(message))

    def oidc_token(self, audience: str | None = None) -> Secret:  # noqa: ARG002 - the contract's signature
        """Raise NotConfiguredError: an Azure token belongs to a service connection, which is unknown here."""
        raise NotConfiguredError(
            "Azure Pipelines issues no token that sealpipe can use",
            remedy="authenticate another way: with a token, or AppRole",
        )
