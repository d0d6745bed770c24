"""Any CI that has no plugin of its own (`CI=true`): it can mask nothing, take no output and show nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sealpipe.plugin import CI, NotConfiguredError, Run, Secret, UnsupportedError

RUNS: Final = (
    "BUILD_URL",  # Jenkins
    "CIRCLE_BUILD_URL",
    "BUILDKITE_BUILD_URL",
    "DRONE_BUILD_LINK",
    "CI_PIPELINE_URL",  # Woodpecker
    "SEMAPHORE_WORKFLOW_ID",
    "TRAVIS_JOB_WEB_URL",
    "BUILD_BUILDURI",  # Azure Pipelines
    "BUILD_ID",
)
"""What tells one run from another, in the systems that are met most."""


class PlainCI(CI):
    """A job somewhere. What stands on stdout is the result, and may stand in its log."""

    def run(self) -> Run:
        """What the first of `RUNS` says; an id all the same where there is none of them."""
        name = next((self.context.environ[name] for name in RUNS if self.context.environ.get(name)), "unknown")
        return Run("plain", name, url=name if name.startswith("https://") else "")

    def mask(self, values: Iterable[Secret]) -> None:
        """Nothing: nobody knows how this system masks."""

    def set_output(self, name: str, value: str) -> None:  # noqa: ARG002 - the contract's signature
        """UnsupportedError: what it hands on, it takes from stdout."""
        raise UnsupportedError("this CI has no way to hand a value on", remedy="take it from stdout, or use --receipt")

    def summary(self, markdown: str) -> None:
        """Nothing: no summary is known."""

    def oidc_token(self, audience: str | None = None) -> Secret:  # noqa: ARG002 - the contract's signature
        """NotConfiguredError: no token is known."""
        raise NotConfiguredError(
            "no CI system here issues tokens", remedy="authenticate another way: with a token, or AppRole"
        )
