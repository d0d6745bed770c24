"""CircleCI: a token for any audience by its program. The rest is in the table of CI systems."""

from __future__ import annotations

import json
from typing import Final

from sealpipe.plugin import Secret
from sealpipe_plugins.ci import JobCI, read_audiences
from sealpipe_plugins.job_programs import is_missing, request_token

_PROGRAM: Final = ("circleci", "run", "oidc", "get")


class CircleCI(JobCI):
    """A job of CircleCI. Its log masks only variables of contexts and projects."""

    def oidc_token(self, audience: str | None = None) -> Secret:
        """Return the job's token, or one for another audience from `circleci run oidc get`."""
        token = self.context.environ.get(self.oidc_variable, "")
        has_it = audience is None or audience in read_audiences(token)
        if has_it or is_missing(self.context, _PROGRAM[0]):
            return super().oidc_token(audience)
        claims = json.dumps({"aud": audience})
        return request_token(self.context, [*_PROGRAM, "--claims", claims], self.job.audience)
