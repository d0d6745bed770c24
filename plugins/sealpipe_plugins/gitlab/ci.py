"""GitLab CI. A running job cannot add masks, and its OIDC tokens are declared before it starts."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sealpipe.plugin import PluginError, UnsupportedError
from sealpipe.plugin.settings import PluginSettings
from sealpipe_plugins.ci import JobCI, format_assignment, name_variable


class GitLabCISettings(PluginSettings):
    """`id_token_variable` is the variable that the job's `id_tokens` declares (default:
    VAULT_ID_TOKEN).

    `dotenv` is the file that the job declares as its dotenv report: outputs are written there, with
    upper-case names after `dotenv_prefix`.
    """

    id_token_variable: str = ""
    dotenv: Path | None = None
    dotenv_prefix: str = ""


MAX_VARIABLES: Final = 20
MAX_BYTES: Final = 5 * 1024
"""What GitLab accepts in a dotenv report."""
_REPORT: Final = "a dotenv report"


class GitLabCI(JobCI):
    """A job of GitLab CI. GitLab masks only variables that were masked when the job started."""

    def set_output(self, name: str, value: str) -> None:
        """Write to the job's dotenv report, if set: plain text for all later jobs.

        An empty value removes the line.
        """
        if self.settings.dotenv is None:
            raise UnsupportedError(
                "GitLab passes values on only in a dotenv report",
                remedy="set dotenv to the file of a dotenv report (artifacts:reports:dotenv)",
            )
        key = name_variable(name, _REPORT, self.settings.dotenv_prefix)
        line = format_assignment(key, value, _REPORT)
        try:
            # bytes, because the job's other lines may not be UTF-8
            lines = self.settings.dotenv.read_bytes().split(b"\n")
        except FileNotFoundError:
            lines = []
        lines = [line for line in lines if line and not line.startswith(f"{key}=".encode())]
        lines += [line] if value else []
        content = b"".join(line + b"\n" for line in lines)
        if len(lines) > MAX_VARIABLES or len(content) > MAX_BYTES:
            raise PluginError(
                f"the dotenv report has no room for {key}",
                remedy="give each job a report of its own",
            )
        self.settings.dotenv.write_bytes(content)
