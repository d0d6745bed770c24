"""The one table of CI systems.

How to detect each, how it masks a value in its log, and what it offers to its jobs.

Code, tests and documentation use it. So does `actions/_run`, with any Python from 3.9 on: it
imports only the standard library. A variable counts as set unless its value is one of
`FALSE_VALUES`. So `CI=false` disables the last row, but not a system that has its own variable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

FALSE_VALUES: Final = ("", "0", "false", "no", "off")
"""Values, in any case, that count as not set."""


class RunnerCommand(NamedTuple):
    """A command in a job's output: `prefix`, then a text, escaped."""

    prefix: str
    percent: str
    """How a percent sign in the text is escaped."""

    def format(self, text: str) -> str:
        """Return the command with a text, as one line."""
        escaped = text.replace("%", self.percent).replace("\r", "%0D").replace("\n", "%0A")
        return f"{self.prefix}{escaped}\n"


ADD_MASK: Final = RunnerCommand("::add-mask::", "%25")
"""The command by which GitHub Actions, Gitea and Forgejo mask a value."""
SET_SECRET: Final = RunnerCommand("##vso[task.setsecret]", "%AZP25")
"""The command by which Azure Pipelines masks a value."""


class Job(NamedTuple):
    """What a system offers to its jobs, by documented variables and programs.

    What is empty, it lacks.

    `mask_program` reads values to mask as JSON on stdin. `output` sets an output: a variable with
    the name of a file, a command in the log, a program that reads the value on stdin, or GitLab's
    report. `oidc` is where the OIDC token is from: a variable, or a program that prints it.
    `oidc_setup` is what the job needs for it, and `audience` how it gets one for a certain
    audience.
    """

    run: tuple[str, ...] = ()
    """Variables that together identify a run."""
    run_id: str = ""
    """The variable that must be set: the others are the same in every run."""
    link: str = ""
    """The address of the run, with variables in braces."""
    actor: str = ""
    """The variable with the user who started the run."""
    mask_program: str = ""
    output: str = ""
    oidc: str = ""
    oidc_setup: str = ""
    audience: str = ""
    pipeline: tuple[str, ...] = ()
    """Variables that together identify a run, and stay as they are if its job is repeated."""


class CISystem(NamedTuple):
    """One row. `indicators` are documented variables, NAME or NAME=VALUE: one of them is enough."""

    name: str
    title: str
    indicators: tuple[str, ...]
    mask: RunnerCommand | None = None
    """The command that masks a value while a job runs; None if there is none."""
    plugin: str = "plain"
    """The CI plugin for it."""
    job: Job = Job()


_ACTIONS: Final = Job(
    ("GITHUB_REPOSITORY", "GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT", "GITHUB_JOB"),
    "GITHUB_RUN_ID",
    "{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}/actions/runs/{GITHUB_RUN_ID}",
    "GITHUB_ACTOR",
    output="GITHUB_OUTPUT",
    oidc="ACTIONS_ID_TOKEN_REQUEST_URL",
    oidc_setup=(
        "give the job `permissions: id-token: write` (a pull request from a fork never gets it)"
    ),
    audience="any",
    pipeline=("GITHUB_REPOSITORY", "GITHUB_RUN_ID"),
)
_AZURE: Final = Job(
    ("SYSTEM_COLLECTIONURI", "SYSTEM_TEAMPROJECT", "BUILD_BUILDID", "SYSTEM_JOBID"),
    "BUILD_BUILDID",
    "{SYSTEM_COLLECTIONURI}{SYSTEM_TEAMPROJECT}/_build/results?buildId={BUILD_BUILDID}",
    "BUILD_REQUESTEDFOR",
    output="##vso[task.setvariable variable={name};isOutput=true]",
    oidc="SYSTEM_OIDCREQUESTURI",
    oidc_setup=(
        "give the step `env: SYSTEM_ACCESSTOKEN: $(System.AccessToken)`, and set service_connection"
    ),
    audience="only `api://AzureADTokenExchange`, which Azure chooses",
    pipeline=("SYSTEM_COLLECTIONURI", "BUILD_BUILDID"),
)
_BITBUCKET: Final = Job(
    ("BITBUCKET_REPO_FULL_NAME", "BITBUCKET_BUILD_NUMBER", "BITBUCKET_STEP_UUID"),
    "BITBUCKET_BUILD_NUMBER",
    "https://bitbucket.org/{BITBUCKET_REPO_FULL_NAME}/pipelines/results/{BITBUCKET_BUILD_NUMBER}",
    "BITBUCKET_STEP_TRIGGERER_UUID",
    output="BITBUCKET_PIPELINES_VARIABLES_PATH",
    oidc="BITBUCKET_STEP_OIDC_TOKEN",
    oidc_setup="give the step `oidc: true`",
    audience="list it in the step: `oidc: {audiences: [...]}`",
    pipeline=("BITBUCKET_REPO_FULL_NAME", "BITBUCKET_BUILD_NUMBER"),
)
_BUILDKITE: Final = Job(
    ("BUILDKITE_BUILD_ID", "BUILDKITE_JOB_ID"),
    "BUILDKITE_JOB_ID",
    "{BUILDKITE_BUILD_URL}#{BUILDKITE_JOB_ID}",
    "BUILDKITE_BUILD_CREATOR",
    mask_program="buildkite-agent redactor add --format json",
    output="buildkite-agent meta-data set sealpipe:{name}",
    oidc="buildkite-agent oidc request-token",
    oidc_setup=(
        "run sealpipe where buildkite-agent is on PATH (a job in a container has to mount it)"
    ),
    audience="any",
    pipeline=("BUILDKITE_BUILD_ID",),
)
_CIRCLECI: Final = Job(
    ("CIRCLE_WORKFLOW_ID", "CIRCLE_BUILD_NUM"),
    "CIRCLE_BUILD_NUM",
    "{CIRCLE_BUILD_URL}",
    "CIRCLE_USERNAME",
    oidc="CIRCLE_OIDC_TOKEN_V2",
    oidc_setup="builds of forks have no token, unless the project passes secrets to them",
    audience=(
        "any, by `circleci run oidc get`; without that program only the ID of the organization"
    ),
)
_GITLAB: Final = Job(
    ("CI_PROJECT_PATH", "CI_JOB_ID"),
    "CI_JOB_ID",
    "{CI_JOB_URL}",
    "GITLAB_USER_LOGIN",
    output="artifacts:reports:dotenv",
    oidc="VAULT_ID_TOKEN",
    oidc_setup="add `id_tokens: {VAULT_ID_TOKEN: {aud: ...}}` to the job",
    audience="set it as `aud` where the job declares the token",
    pipeline=("CI_PROJECT_PATH", "CI_PIPELINE_ID"),
)
_JENKINS: Final = Job(
    ("JENKINS_URL", "JOB_NAME", "BUILD_NUMBER"),
    "BUILD_NUMBER",
    "{BUILD_URL}",
    "BUILD_USER_ID",
    oidc="ID_TOKEN",
    oidc_setup=(
        "bind a token of the plugin oidc-provider: `withCredentials([string(variable: "
        "'ID_TOKEN', ...)])`"
    ),
    audience="set it in the Jenkins credential",
)
_TEAMCITY: Final = Job(
    ("TEAMCITY_PROJECT_NAME", "TEAMCITY_BUILDCONF_NAME", "BUILD_NUMBER"),
    "BUILD_NUMBER",
    "{BUILD_URL}",
)
_WOODPECKER: Final = Job(
    ("CI_REPO", "CI_PIPELINE_NUMBER", "CI_WORKFLOW_NUMBER"),
    "CI_PIPELINE_NUMBER",
    "{CI_PIPELINE_URL}",
    "CI_PIPELINE_AUTHOR",
)

CI_SYSTEMS: Final = (
    # In most of these, the user who starts a job can set GITHUB_ACTIONS: a mask would be readable
    # in the log.
    CISystem("gitlab", "GitLab CI", ("GITLAB_CI",), None, "gitlab", _GITLAB),
    CISystem("buildkite", "Buildkite", ("BUILDKITE",), None, "buildkite", _BUILDKITE),
    CISystem(
        "bitbucket",
        "Bitbucket Pipelines",
        ("BITBUCKET_BUILD_NUMBER",),
        None,
        "bitbucket",
        _BITBUCKET,
    ),
    CISystem("circleci", "CircleCI", ("CIRCLECI",), None, "circleci", _CIRCLECI),
    CISystem("teamcity", "TeamCity", ("TEAMCITY_VERSION",), None, "teamcity", _TEAMCITY),
    CISystem("woodpecker", "Woodpecker", ("CI=woodpecker",), None, "woodpecker", _WOODPECKER),
    # Systems with masks come next: a job may set another system's indicator, such as BUILD_ID.
    CISystem("azure", "Azure Pipelines", ("TF_BUILD",), SET_SECRET, "azure", _AZURE),
    CISystem("forgejo", "Forgejo Actions", ("FORGEJO_ACTIONS",), ADD_MASK, "github", _ACTIONS),
    CISystem("gitea", "Gitea Actions", ("GITEA_ACTIONS",), ADD_MASK, "github", _ACTIONS),
    CISystem("github", "GitHub Actions", ("GITHUB_ACTIONS",), ADD_MASK, "github", _ACTIONS),
    CISystem("agola", "Agola", ("AGOLA_GIT_REF",)),
    CISystem("appcircle", "Appcircle", ("AC_APPCIRCLE",)),
    CISystem("appveyor", "AppVeyor", ("APPVEYOR",)),
    CISystem("codebuild", "AWS CodeBuild", ("CODEBUILD_BUILD_ID",)),
    CISystem("bamboo", "Bamboo", ("bamboo_buildKey", "bamboo_planKey")),
    CISystem("bitrise", "Bitrise", ("BITRISE_IO",)),
    CISystem("buddy", "Buddy", ("BUDDY_WORKSPACE_ID",)),
    CISystem("cirrus", "Cirrus CI", ("CIRRUS_CI",)),
    CISystem("cloudflare", "Cloudflare Pages and Workers Builds", ("CF_PAGES", "WORKERS_CI")),
    CISystem("codefresh", "Codefresh", ("CF_BUILD_ID",)),
    CISystem("codemagic", "Codemagic", ("CM_BUILD_ID",)),
    CISystem("codeship", "Codeship", ("CI_NAME=codeship",)),
    CISystem("drone", "Drone", ("DRONE",)),
    CISystem("earthly", "Earthly", ("EARTHLY_CI",)),
    CISystem("eas", "Expo EAS Build", ("EAS_BUILD",)),
    CISystem("gocd", "GoCD", ("GO_PIPELINE_NAME",)),
    CISystem("google", "Google Cloud Build", ("BUILDER_OUTPUT",)),
    CISystem("harness", "Harness CI", ("HARNESS_BUILD_ID",)),
    CISystem("heroku", "Heroku CI", ("HEROKU_TEST_RUN_ID",)),
    CISystem("netlify", "Netlify", ("NETLIFY",)),
    CISystem("prow", "Prow", ("PROW_JOB_ID",)),
    CISystem("render", "Render", ("RENDER=true",)),
    CISystem("screwdriver", "Screwdriver", ("SCREWDRIVER",)),
    CISystem("semaphore", "Semaphore", ("SEMAPHORE",)),
    CISystem("sourcehut", "SourceHut builds", ("CI_NAME=sourcehut",)),
    CISystem("taskcluster", "Taskcluster", ("TASKCLUSTER_ROOT_URL",)),
    CISystem("travis", "Travis CI", ("TRAVIS",)),
    CISystem("vela", "Vela", ("VELA",)),
    CISystem("vercel", "Vercel", ("VERCEL",)),
    CISystem("xcode", "Xcode Cloud", ("CI_XCODE_CLOUD",)),
    # Last: these variables are common names.
    CISystem(
        "jenkins",
        "Jenkins",
        ("JENKINS_URL", "HUDSON_URL", "BUILD_ID", "BUILD_NUMBER"),
        None,
        "jenkins",
        _JENKINS,
    ),
    # Many tools and their images set this instead of CI.
    CISystem(
        "integrating", "a CI system (CONTINUOUS_INTEGRATION is set)", ("CONTINUOUS_INTEGRATION",)
    ),
    CISystem("other", "a CI system (CI is set)", ("CI",)),
)

PLUGINS: Final = frozenset(row.plugin for row in CI_SYSTEMS)
"""Our own CI plugins. No other plugin replaces them."""


def is_set(environ: Mapping[str, str], indicator: str) -> bool:
    """Whether an indicator, NAME or NAME=VALUE, is set."""
    name, _, expected = indicator.partition("=")
    value = environ.get(name, "")
    return value.lower() == expected if expected else value.strip().lower() not in FALSE_VALUES


def detect_ci_system(environ: Mapping[str, str]) -> CISystem | None:
    """Return the CI system of an environment, the first that matches; None outside CI."""
    return next(
        (
            row
            for row in CI_SYSTEMS
            if any(is_set(environ, indicator) for indicator in row.indicators)
        ),
        None,
    )


def list_variables() -> Iterator[str]:
    """Yield the variables of all indicators."""
    yield from dict.fromkeys(
        indicator.partition("=")[0] for row in CI_SYSTEMS for indicator in row.indicators
    )


class Mark(NamedTuple):
    """The beginning of a CI command: `text`, then a match of the pattern `following`.

    `escape_index` is the index of the character to escape. Unless `is_inline`, the mark counts only
    at the beginning of a line, after optional white space.
    """

    text: str
    escape_index: int
    following: str
    is_inline: bool
    systems: str


_NAMED_COMMAND: Final = r"[A-Za-z0-9_.-]*[\[:]"
_BARE_MARK: Final = r"(?:[\s\"\\]|$)"
"""White space or the end, also of a JSON string."""

LINE_START_MARKS: Final = False
INLINE_MARKS: Final = True

MARKS: Final = (
    Mark("::", 1, "", LINE_START_MARKS, "GitHub Actions, Gitea, Forgejo"),
    Mark(
        "##",
        1,
        _NAMED_COMMAND,
        INLINE_MARKS,
        "GitHub Actions and Azure (##[x]), Azure (##vso[), TeamCity, Unity (##utp:)",
    ),
    Mark("section_start:", 13, "", INLINE_MARKS, "GitLab"),
    Mark("section_end:", 11, "", INLINE_MARKS, "GitLab"),
    Mark("travis_fold:", 11, "", INLINE_MARKS, "Travis"),
    Mark("travis_time:", 11, "", INLINE_MARKS, "Travis"),
    Mark("---", 0, _BARE_MARK, LINE_START_MARKS, "Buildkite"),
    Mark("+++", 0, _BARE_MARK, LINE_START_MARKS, "Buildkite"),
    Mark("~~~", 0, _BARE_MARK, LINE_START_MARKS, "Buildkite"),
    Mark("^^^", 0, r"\s+\+\+\+", LINE_START_MARKS, "Buildkite"),
)

TEXT, JSON = "\\x{:02x}", "\\u{:04x}"
"""How a character is escaped."""


def escape_line(line: str) -> str:
    """Escape a line, so that no CI system takes it for a command."""
    return _break_marks(line, MARKS, TEXT)


def escape_inline(text: str) -> str:
    """Escape text inside a line, not at its beginning."""
    return _break_marks(text, [mark for mark in MARKS if mark.is_inline], TEXT)


def escape_json(text: str) -> str:
    """Escape JSON without changing its meaning.

    No mark is left, even if a program breaks the line.
    """
    return _break_marks(text, [mark._replace(is_inline=True) for mark in MARKS], JSON)


def _break_marks(text: str, marks: Iterable[Mark], form: str) -> str:
    for mark in marks:
        if mark.text in text:
            before, sign, rest = (
                mark.text[: mark.escape_index],
                mark.text[mark.escape_index],
                mark.text[mark.escape_index + 1 :],
            )
            start = "" if mark.is_inline else r"\A\s*"
            following = f"(?={re.escape(rest)}{mark.following})"
            pattern = f"({start}{re.escape(before)}){re.escape(sign)}{following}"
            # A replacement needs a double backslash.
            text = re.sub(pattern, rf"\g<1>\{form.format(ord(sign))}", text)
    return text
