"""Settings of GitLab CI."""

from __future__ import annotations

from pathlib import Path

from sealpipe.plugin.settings import PluginSettings


class GitLabSettings(PluginSettings):
    """`id_token_variable` is the variable that the job's `id_tokens` declares.

    `dotenv` is the file that the job names as its dotenv report: outputs are written there, their names in capitals
    behind `dotenv_prefix`.
    """

    id_token_variable: str = "VAULT_ID_TOKEN"  # noqa: S105 - the name of a variable
    dotenv: Path | None = None
    dotenv_prefix: str = ""
