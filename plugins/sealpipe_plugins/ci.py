"""The built-in CI systems, their shared helpers, and `PlainCI` for unknown systems.

The modules of the other systems are imported only on that system, when first used.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable
from typing import Any, Final
from urllib.parse import quote

from sealpipe.plugin import (
    CI,
    CIInfo,
    CISystem,
    Context,
    NotConfiguredError,
    PluginError,
    Run,
    RunnerCommand,
    Secret,
    UnsupportedError,
    detect_ci_system,
    is_stderr_readable,
    select_maskable_lines,
    write_stderr,
)


def sealpipe_ci(register: Callable[[CIInfo], None]) -> None:
    """The descriptors."""
    package = "sealpipe_plugins"
    register(CIInfo("plain", "any other CI system", f"{package}.ci:PlainCI", sign="CI"))
    register(
        CIInfo("github", "GitHub Actions", f"{package}.github.ci:GitHubCI", sign="GITHUB_ACTIONS")
    )
    register(
        CIInfo(
            "bitbucket",
            "Bitbucket",
            f"{package}.bitbucket.ci:BitbucketCI",
            sign="BITBUCKET_BUILD_NUMBER",
        )
    )
    register(
        CIInfo("buildkite", "Buildkite", f"{package}.buildkite.ci:BuildkiteCI", sign="BUILDKITE")
    )
    register(CIInfo("circleci", "CircleCI", f"{package}.circleci.ci:CircleCI", sign="CIRCLECI"))
    register(CIInfo("teamcity", "TeamCity", f"{package}.ci:JobCI", sign="TEAMCITY_VERSION"))
    register(CIInfo("woodpecker", "Woodpecker", f"{package}.ci:JobCI", sign="CI=woodpecker"))
    for name, summary, factory, sign, settings in (
        ("azure", "Azure Pipelines", "azure.ci:AzureCI", "TF_BUILD", "azure.ci:AzureCISettings"),
        ("gitlab", "GitLab CI", "gitlab.ci:GitLabCI", "GITLAB_CI", "gitlab.ci:GitLabCISettings"),
        ("jenkins", "Jenkins", "ci:JobCI", "JENKINS_URL", "jenkins.ci:JenkinsCISettings"),
    ):
        register(
            CIInfo(
                name, summary, f"{package}.{factory}", sign=sign, settings=f"{package}.{settings}"
            )
        )


def write_masks(ci: CI, command: RunnerCommand, values: Iterable[Secret]) -> None:
    """Mask values and each of their lines, on stderr; warn about lines that are too short to mask.

    Nothing is written if no runner reads stderr: a mask command in a file would itself leak the
    value.
    """
    if not is_stderr_readable():
        return
    lines, short = select_maskable_lines(value.reveal() for value in values)
    write_text("".join(map(command.format, lines)))
    if short:
        ci.annotate("warning", describe_short_lines(short))


def describe_short_lines(number: int) -> str:
    """Return the warning about lines that are too short to mask."""
    if number == 1:
        return "1 secret line is too short to be masked: do not print it"
    return f"{number} secret lines are too short to be masked: do not print them"


def write_text(text: str) -> None:
    """Write the whole text to stderr."""
    write_stderr(text.encode("utf-8", "replace"))


_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN_VALUE: Final = re.compile(r"[A-Za-z0-9_.,:+/=@~%-]*")
"""Values that need no quotes: most systems parse none in such a file, and later jobs expand `$`."""


def name_variable(name: str, where: str, prefix: str = "") -> str:
    """Return an output's name as a variable: SHORT_CODE.

    PluginError says that it cannot be written to `where`.
    """
    variable = prefix + name.upper().replace("-", "_")
    if not _VARIABLE.fullmatch(variable):
        raise _output_error(f"the output {variable[:40]!r}", where)
    return variable


def format_assignment(variable: str, value: str, where: str) -> bytes:
    """Return `NAME=VALUE` for a file of variables. PluginError if the value would need quotes."""
    if not _PLAIN_VALUE.fullmatch(value):
        raise _output_error(f"this value of {variable}", where)
    return f"{variable}={value}".encode()


def _output_error(what: str, where: str) -> PluginError:
    return PluginError(f"{what} cannot be written to {where}", remedy="take it from --receipt")


def read_audiences(token: str) -> list[Any]:
    """Return the audiences of a token; empty if it is not a JWT.

    It is not verified, so no JWT library is needed.
    """
    try:
        part = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        audiences = claims.get("aud", [])
    except (ValueError, IndexError, AttributeError):
        return []
    return audiences if isinstance(audiences, list) else [audiences]


_NO_TOKEN: Final = "authenticate another way: with a token, or AppRole"  # noqa: S105 - a remedy


class JobCI(CI):
    """A job of a system that the table knows, as far as the table says all.

    The run, and a token in a variable.
    """

    def __init__(self, settings: Any, context: Context) -> None:
        super().__init__(settings, context)
        system = detect_ci_system(context.environ)
        if system is None:
            raise NotConfiguredError("this process is not a job of a CI system")
        self.system: CISystem = system
        self.job = system.job

    def run(self) -> Run:
        """Identify the run by its documented variables."""
        env = self.context.environ
        name = "/".join(env.get(variable, "") for variable in self.job.run)
        return Run(self.context.store, name, env.get(self.job.actor, ""), self._make_link())

    def mask(self, values: Iterable[Secret]) -> None:
        """Do nothing: a running job cannot mask more values there."""

    def set_output(self, name: str, value: str) -> None:  # noqa: ARG002 - the contract's signature
        """Raise UnsupportedError: no file or program there takes outputs."""
        raise UnsupportedError(
            f"{self.system.title} takes no outputs from a program",
            remedy="take it from stdout, or use --receipt",
        )

    def summary(self, markdown: str) -> None:
        """Do nothing: a job cannot add to a summary there."""

    def oidc_token(self, audience: str | None = None) -> Secret:
        """Return the token in the job's variable.

        NotConfiguredError if it is missing or for another audience.
        """
        name = self.oidc_variable
        if not name:
            raise NotConfiguredError(
                f"{self.system.title} issues no OIDC tokens to jobs", remedy=_NO_TOKEN
            )
        token = self.context.environ.get(name)
        if not token:
            remedy = self.job.oidc_setup.replace(self.job.oidc, name)
            if self.settings is not None:
                remedy += (
                    f", or name its variable with {self.context.get_variable('id_token_variable')}"
                )
            raise NotConfiguredError(
                f"this job of {self.system.title} has no {name}", remedy=remedy
            )
        return self.check_audience(token, audience, name)

    @property
    def oidc_variable(self) -> str:
        """The variable that holds the token: the one in the settings, if there are any."""
        return getattr(self.settings, "id_token_variable", "") or self.job.oidc

    def check_audience(self, token: str, audience: str | None, name: str) -> Secret:
        """Return the token if it is for the audience.

        Otherwise NotConfiguredError says which it is for.
        """
        audiences = read_audiences(token)
        if audience is None or audience in audiences:
            return Secret(token)
        known = f"; it is for {', '.join(map(str, audiences))}" if audiences else ""
        raise NotConfiguredError(
            f"{name} is not a token for the audience {audience}{known}",
            remedy=f"the audience: {self.job.audience}",
        )

    def _make_link(self) -> str:
        """Return the run's address.

        Empty if a variable is missing, or the result is no web address.
        """
        env = self.context.environ
        missing = [name for name in re.findall(r"\{(\w+)\}", self.job.link) if not env.get(name)]
        link = re.sub(r"\{(\w+)\}", lambda match: env.get(match[1], ""), self.job.link)
        return (
            quote(link, safe=":/?#[]@!$&'()*+,;=%")
            if not missing and link.startswith(("https://", "http://"))
            else ""
        )


RUN_VARIABLES: Final = (
    "BUILD_URL",
    "DRONE_BUILD_LINK",
    "SEMAPHORE_WORKFLOW_ID",
    "TRAVIS_JOB_WEB_URL",
    "BUILD_BUILDURI",
    "BUILD_ID",
)
"""Variables that identify a run, in common CI systems."""


class PlainCI(JobCI):
    """A job of a system of which only the sign is known."""

    def run(self) -> Run:
        """Identify the run by the first of `RUN_VARIABLES` that is set."""
        name = next(
            (
                self.context.environ[name]
                for name in RUN_VARIABLES
                if self.context.environ.get(name)
            ),
            "unknown",
        )
        return Run("plain", name, url=name if name.startswith("https://") else "")

    def set_output(self, name: str, value: str) -> None:  # noqa: ARG002 - the contract's signature
        """Raise UnsupportedError: the result is on stdout."""
        raise UnsupportedError(
            "this CI system has no outputs", remedy="take it from stdout, or use --receipt"
        )

    def oidc_token(self, audience: str | None = None) -> Secret:  # noqa: ARG002
        """Raise NotConfiguredError: there is no token."""
        raise NotConfiguredError(
            "this CI system issues no tokens that sealpipe supports", remedy=_NO_TOKEN
        )
