"""The built-in CI systems. Their modules are imported where this process runs in one, and something asks for it."""

from __future__ import annotations

from collections.abc import Callable

from sealpipe.plugin import CIInfo, hookimpl


@hookimpl
def sealpipe_ci(register: Callable[[CIInfo], None]) -> None:
    """The descriptors."""
    here = "sealpipe_plugins"
    register(CIInfo("plain", "any other CI system", f"{here}.plain_ci:PlainCI", sign="CI"))
    register(CIInfo("github", "GitHub Actions", f"{here}.github.ci:GitHubCI", sign="GITHUB_ACTIONS"))
    register(CIInfo("azure", "Azure Pipelines", f"{here}.azure.ci:AzureCI", sign="TF_BUILD"))
    register(
        CIInfo(
            "gitlab",
            "GitLab CI",
            f"{here}.gitlab.ci:GitLabCI",
            sign="GITLAB_CI",
            settings=f"{here}.gitlab.ci:GitLabCISettings",
        )
    )
