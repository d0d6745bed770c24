"""GitLab CI. A running job cannot add masks, and its OIDC tokens are declared before it starts."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from sealpipe.plugin import CI, NotConfiguredError, PluginError, Run, Secret, UnsupportedError
from sealpipe.plugin.settings import PluginSettings


class GitLabCISettings(PluginSettings):
    """`id_token_variable` is the variable that the job's `id_tokens` declares.

    `dotenv` is the file that the job declares as its dotenv report: outputs are written there, with upper-case names
    after `dotenv_prefix`.
    """

    id_token_variable: str = "VAULT_ID_TOKEN"  # noqa: S105 - the name of a variable
    dotenv: Path | None = None
    dotenv_prefix: str = ""


MAX_VARIABLES: Final = 20
MAX_BYTES: Final = 5 * 1024
"""Names that GitLab accepts in a dotenv report."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VALUE: Final = re.compile(r"[A-Za-z0-9_.,:+/=@~%-]*")
"""Values without characters that need quotes: GitLab parses no quotes, and later jobs expand `$`."""


class GitLabCI(CI):
    """A job of GitLab CI."""

    def run(self) -> Run:
        """Identify the run by project and job."""
        env = self.context.environ
        name = f"{env.get('CI_PROJECT_PATH', '')}/{env.get('CI_JOB_ID', '')}"
        return Run("gitlab", name, env.get("GITLAB_USER_LOGIN", ""), env.get("CI_JOB_URL", ""))

    def mask(self, values: Iterable[Secret]) -> None:
        """Do nothing: GitLab masks only variables that were masked when the job started."""

    def set_output(self, name: str, value: str) -> None:
        """Write to the job's dotenv report, if set: plain text for all later jobs. An empty value removes the line."""
        if self.settings.dotenv is None:
            raise UnsupportedError(
                "GitLab passes values on only in a dotenv report",
                remedy="set dotenv to the file of a dotenv report (artifacts:reports:dotenv)",
            )
        key = self.settings.dotenv_prefix + name.upper().replace("-", "_")
        if not _NAME.fullmatch(key) or not _VALUE.fullmatch(value):
            raise PluginError(f"{key} cannot be written to a dotenv report", remedy="take it from --receipt")
        try:
            # bytes, because the job's other lines may not be UTF-8
            lines = self.settings.dotenv.read_bytes().split(b"\n")
        except FileNotFoundError:
            lines = []
        lines = [line for line in lines if line and not line.startswith(f"{key}=".encode())]
        lines += [f"{key}={value}".encode()] if value else []
        content = b"".join(line + b"\n" for line in lines)
        if len(lines) > MAX_VARIABLES or len(content) > MAX_BYTES:
            raise PluginError(f"the dotenv report has no room for {key}", remedy="give each job a report of its own")
        self.settings.dotenv.write_bytes(content)

    def summary(self, markdown: str) -> None:
        """Do nothing: GitLab has no summary of a run."""

    def oidc_token(self, audience: str | None = None) -> Secret:
        """Return the token that the job declares. NotConfiguredError if it is missing or for another audience."""
        name = self.settings.id_token_variable
        token = self.context.environ.get(name)
        if not token:
            raise NotConfiguredError(
                f"this GitLab job declares no {name}",
                remedy=f"add `id_tokens: {{{name}: {{aud: ...}}}}` to the job, or name another variable with "
                "SEALPIPE_PLUGIN_GITLAB__ID_TOKEN_VARIABLE",
            )
        audiences = _read_audiences(token)
        if audience is not None and audience not in audiences:
            raise NotConfiguredError(
                f"{name} is not a token for the audience {audience}",
                remedy=f"set `aud: {audience}` where the job declares {name}",
            )
        return Secret(token)


def _read_audiences(token: str) -> list[Any]:
    """Return the audiences of a token; empty if it is not a JWT. It is not verified, so no JWT library is needed."""
    try:
        part = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        audiences = claims.get("aud", [])
    except (ValueError, IndexError, AttributeError):
        return []
    return audiences if isinstance(audiences, list) else [audiences]
