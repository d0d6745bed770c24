"""GitLab CI: nothing can be masked there while a job runs, and tokens are declared before it starts."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any

from sealpipe.plugin import CI, NotConfigured, Run, Secret, Unsupported


class GitLab(CI):
    """A job of GitLab CI, by its predefined variables."""

    def run(self) -> Run:
        """Project and job."""
        env = self.context.environ
        name = f"{env.get('CI_PROJECT_PATH', '')}/{env.get('CI_JOB_ID', '')}"
        return Run("gitlab", name, env.get("GITLAB_USER_LOGIN", ""), env.get("CI_JOB_URL", ""))

    def mask(self, values: Iterable[Secret]) -> None:
        """Nothing: GitLab masks what was a masked variable when the job began. Hence nothing secret is printed."""

    def set_output(self, name: str, value: str) -> None:  # noqa: ARG002 - the contract's signature
        """Unsupported: a dotenv report is a file that the job names, and its values are kept in clear."""
        raise Unsupported("GitLab has no way to hand a value on from within", remedy="write a dotenv report")

    def summary(self, markdown: str) -> None:
        """Nothing: GitLab has no summary of a run."""

    def oidc_token(self, audience: str | None = None) -> Secret:
        """The token that the job declares. NotConfigured where there is none, or it is for another audience."""
        name = self.settings.id_token_variable
        token = self.context.environ.get(name)
        if not token:
            raise NotConfigured(
                f"this GitLab job declares no {name}",
                remedy=f"add `id_tokens: {{{name}: {{aud: ...}}}}` to the job, or name another variable with "
                "SEALPIPE_PLUGIN_GITLAB__ID_TOKEN_VARIABLE",
            )
        meant = _audiences(token)
        if audience is not None and audience not in meant:
            raise NotConfigured(
                f"{name} is a token for another audience than {audience}",
                remedy=f"set `aud: {audience}` where the job declares {name}",
            )
        return Secret(token)


def _audiences(token: str) -> list[Any]:
    """The audiences that a token names, unchecked: its reader checks it. None where it is no JWT."""
    try:
        part = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        found = claims.get("aud", [])
    except (ValueError, IndexError, AttributeError):
        return []
    return found if isinstance(found, list) else [found]
