"""Settings of GitLab CI."""

from __future__ import annotations

from sealpipe.plugin.settings import PluginSettings


class GitLabSettings(PluginSettings):
    """`id_token_variable` is the variable that the job's `id_tokens` declares."""

    id_token_variable: str = "VAULT_ID_TOKEN"  # noqa: S105 - the name of a variable
