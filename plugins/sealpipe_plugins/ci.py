"""The built-in CI systems, their shared helpers, and `PlainCI` for unknown systems.

The modules of the other systems are imported only on that system, when first used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from sealpipe.plugin import (
    CI,
    CIInfo,
    NotConfiguredError,
    Run,
    RunnerCommand,
    Secret,
    UnsupportedError,
    is_stderr_readable,
    select_maskable_lines,
    write_stderr,
)


def sealpipe_ci(register: Callable[[CIInfo], None]) -> None:
    """The descriptors."""
    package = "sealpipe_plugins"
    register(CIInfo("plain", "any other CI system", f"{package}.ci:PlainCI", sign="CI"))
    register(CIInfo("github", "GitHub Actions", f"{package}.github.ci:GitHubCI", sign="GITHUB_ACTIONS"))
    register(CIInfo("azure", "Azure Pipelines", f"{package}.azure.ci:AzureCI", sign="TF_BUILD"))
    register(
        CIInfo(
            "gitlab",
            "GitLab CI",
            f"{package}.gitlab.ci:GitLabCI",
            sign="GITLAB_CI",
            settings=f"{package}.gitlab.ci:GitLabCISettings",
        )
    )


def write_masks(ci: CI, command: RunnerCommand, values: Iterable[Secret]) -> None:
    """Mask values and each of their lines, on stderr; warn about lines that are too short to mask.

    Nothing is written if no runner reads stderr: a mask command in a file would itself leak the value.
    """
    if not is_stderr_readable():
        return
    lines, short = select_maskable_lines(value.reveal() for value in values)
    write_text("".join(map(command.format, lines)))
    if short == 1:
        ci.annotate("warning", "1 secret line is too short to be masked: do not print it")
    elif short:
        ci.annotate("warning", f"{short} secret lines are too short to be masked: do not print them")


def write_text(text: str) -> None:
    """Write the whole text to stderr."""
    write_stderr(text.encode("utf-8", "replace"))


RUN_VARIABLES: Final = (
    "BUILD_URL",  # Jenkins
    "CIRCLE_BUILD_URL",
    "BUILDKITE_BUILD_URL",
    "DRONE_BUILD_LINK",
    "CI_PIPELINE_URL",  # Woodpecker
    "SEMAPHORE_WORKFLOW_ID",
    "TRAVIS_JOB_WEB_URL",
    "BUILD_BUILDURI",  # prefix of Azure Pipelines
    "BUILD_ID",
)
"""Variables that identify a run, in common CI systems."""


class PlainCI(CI):
    """A job of an unknown CI system."""

    def run(self) -> Run:
        """Identify the run by the first of `RUN_VARIABLES` that is set."""
        name = next((self.context.environ[name] for name in RUN_VARIABLES if self.context.environ.get(name)), "unknown")
        return Run("plain", name, url=name if name.startswith("https://") else "")

    def mask(self, values: Iterable[Secret]) -> None:
        """Do nothing: it is unknown how this system masks."""

    def set_output(self, name: str, value: str) -> None:  # noqa: ARG002 - the contract's signature
        """Raise UnsupportedError: the result is on stdout."""
        raise UnsupportedError("this CI system has no outputs", remedy="take it from stdout, or use --receipt")

    def summary(self, markdown: str) -> None:
        """Do nothing: this system has no known summary."""

    def oidc_token(self, audience: str | None = None) -> Secret:  # noqa: ARG002 - the contract's signature
        """Raise NotConfiguredError: there is no token."""
        raise NotConfiguredError(
            "this CI system issues no tokens that sealpipe supports",
            remedy="authenticate another way: with a token, or AppRole",
        )
