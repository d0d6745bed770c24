"""The one table of CI systems: how to detect each, and how it masks a value in its log.

Code, tests and documentation use it. So does `actions/_run`, with any Python from 3.9 on: it imports only the standard
library. A variable counts as set unless its value is one of `FALSE_VALUES`. So `CI=false` disables the last row, but
not a system that has its own variable.
"""

from __future__ import annotations

import os
import re
import stat
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
SET_SECRET: Final = RunnerCommand("##vso[task.setsecret]", "%AZP25")


def make_annotation(level: str) -> RunnerCommand:
    """Return the command of GitHub Actions that shows a text on the run's page."""
    return RunnerCommand(f"::{level} title=sealpipe::", ADD_MASK.percent)


def format_output(name: str, value: str, delimiter: str | None = None) -> str:
    """Return an entry for GITHUB_OUTPUT. Raises ValueError, with the name, if the runner would parse it differently.

    `delimiter` is random, except in tests.
    """
    if delimiter is None:
        from secrets import token_hex  # only for an output

        delimiter = f"sealpipe-{token_hex(16)}"
    if delimiter in value or "\n" in name or "=" in name:
        raise ValueError(name)
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"


class CISystem(NamedTuple):
    """One row. `indicators` are documented variables, NAME or NAME=VALUE: one of them is enough."""

    name: str
    title: str
    indicators: tuple[str, ...]
    mask: RunnerCommand | None = None
    """The command that masks a value while a job runs; None if there is none."""
    plugin: str = "plain"
    """The CI plugin for it."""
    run: tuple[str, ...] = ()
    """Documented variables that together identify a job's run; none where no such variables are known."""
    run_id: str = ""
    """The variable that must be set: the others are the same in every run."""


_ACTIONS_RUN: Final = ("GITHUB_REPOSITORY", "GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT", "GITHUB_JOB")
_AZURE_RUN: Final = ("SYSTEM_COLLECTIONURI", "SYSTEM_TEAMPROJECT", "BUILD_BUILDID", "SYSTEM_JOBID")
_BITBUCKET_RUN: Final = ("BITBUCKET_REPO_FULL_NAME", "BITBUCKET_BUILD_NUMBER", "BITBUCKET_STEP_UUID")
_BUILDKITE_RUN: Final = ("BUILDKITE_BUILD_ID", "BUILDKITE_JOB_ID")
_CIRCLECI_RUN: Final = ("CIRCLE_WORKFLOW_ID", "CIRCLE_BUILD_NUM")
_JENKINS_RUN: Final = ("JENKINS_URL", "JOB_NAME", "BUILD_NUMBER")
_TEAMCITY_RUN: Final = ("TEAMCITY_PROJECT_NAME", "TEAMCITY_BUILDCONF_NAME", "BUILD_NUMBER")
_WOODPECKER_RUN: Final = ("CI_REPO", "CI_PIPELINE_NUMBER", "CI_WORKFLOW_NUMBER")

CI_SYSTEMS: Final = (
    # In GitLab, the user who starts a pipeline can set GITHUB_ACTIONS, too: a mask would be readable in its log.
    CISystem("gitlab", "GitLab CI", ("GITLAB_CI",), None, "gitlab", ("CI_PROJECT_PATH", "CI_JOB_ID"), "CI_JOB_ID"),
    # Systems with masks come next: a job may set another system's indicator, such as BUILD_ID.
    CISystem("forgejo", "Forgejo Actions", ("FORGEJO_ACTIONS",), ADD_MASK, "github", _ACTIONS_RUN, "GITHUB_RUN_ID"),
    CISystem("gitea", "Gitea Actions", ("GITEA_ACTIONS",), ADD_MASK, "github", _ACTIONS_RUN, "GITHUB_RUN_ID"),
    CISystem("github", "GitHub Actions", ("GITHUB_ACTIONS",), ADD_MASK, "github", _ACTIONS_RUN, "GITHUB_RUN_ID"),
    CISystem("azure", "Azure Pipelines", ("TF_BUILD",), SET_SECRET, "azure", _AZURE_RUN, "BUILD_BUILDID"),
    CISystem("agola", "Agola", ("AGOLA_GIT_REF",)),
    CISystem("appcircle", "Appcircle", ("AC_APPCIRCLE",)),
    CISystem("appveyor", "AppVeyor", ("APPVEYOR",)),
    CISystem("codebuild", "AWS CodeBuild", ("CODEBUILD_BUILD_ID",)),
    CISystem("bamboo", "Bamboo", ("bamboo_buildKey", "bamboo_planKey")),
    CISystem(
        "bitbucket",
        "Bitbucket Pipelines",
        ("BITBUCKET_BUILD_NUMBER",),
        run=_BITBUCKET_RUN,
        run_id="BITBUCKET_BUILD_NUMBER",
    ),
    CISystem("bitrise", "Bitrise", ("BITRISE_IO",)),
    CISystem("buddy", "Buddy", ("BUDDY_WORKSPACE_ID",)),
    CISystem(
        "buildkite",
        "Buildkite",
        ("BUILDKITE",),
        run=_BUILDKITE_RUN,
        run_id="BUILDKITE_JOB_ID",
    ),
    CISystem("circleci", "CircleCI", ("CIRCLECI",), run=_CIRCLECI_RUN, run_id="CIRCLE_BUILD_NUM"),
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
    CISystem("teamcity", "TeamCity", ("TEAMCITY_VERSION",), run=_TEAMCITY_RUN, run_id="BUILD_NUMBER"),
    CISystem("travis", "Travis CI", ("TRAVIS",)),
    CISystem("vela", "Vela", ("VELA",)),
    CISystem("vercel", "Vercel", ("VERCEL",)),
    CISystem("woodpecker", "Woodpecker", ("CI=woodpecker",), run=_WOODPECKER_RUN, run_id="CI_PIPELINE_NUMBER"),
    CISystem("xcode", "Xcode Cloud", ("CI_XCODE_CLOUD",)),
    CISystem(
        "jenkins",
        "Jenkins",
        ("JENKINS_URL", "HUDSON_URL", "BUILD_ID", "BUILD_NUMBER"),
        run=_JENKINS_RUN,
        run_id="BUILD_NUMBER",
    ),
    # Many tools and their images set this instead of CI.
    CISystem("integrating", "a CI system (CONTINUOUS_INTEGRATION is set)", ("CONTINUOUS_INTEGRATION",)),
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
    return next((row for row in CI_SYSTEMS if any(is_set(environ, indicator) for indicator in row.indicators)), None)


def list_variables() -> Iterator[str]:
    """Yield the variables of all indicators."""
    yield from dict.fromkeys(indicator.partition("=")[0] for row in CI_SYSTEMS for indicator in row.indicators)


MIN_MASK_LENGTH: Final = 4
"""Minimum length of a masked line: shorter masks would hide common text in the whole log."""


def select_maskable_lines(values: Iterable[str]) -> tuple[list[str], int]:
    """Return the values and each of their lines, at every kind of line break; and how many are too short to mask."""
    parts = [part for value in values for part in (value, *re.split(r"\r\n|[\r\n]", value), *value.splitlines())]
    lines = [part for part in dict.fromkeys(parts) if part.strip()]
    maskable = [line for line in lines if len(line.strip()) >= MIN_MASK_LENGTH]
    return maskable, len(lines) - len(maskable)


def write_stderr(data: bytes) -> None:
    """Write all of it to stderr, without a buffer."""
    view = memoryview(data)
    while view:
        view = view[os.write(2, view) :]


def is_stderr_readable() -> bool:
    """Whether stderr may reach a runner: not if it is a file, a device, or a pipe without a reader."""
    try:
        mode = os.fstat(2).st_mode
        if stat.S_ISFIFO(mode):
            return not _is_broken(2)
        return stat.S_ISSOCK(mode) or os.isatty(2)
    except OSError:
        return False


def _is_broken(descriptor: int) -> bool:
    """Whether a pipe has lost its reader."""
    import select

    poller = select.poll()
    poller.register(descriptor, 0)
    return any(events & select.POLLERR for _, events in poller.poll(0))


class Mark(NamedTuple):
    """The beginning of a CI command: `text`, then a match of the pattern `following`.

    `escape_index` is the index of the character to escape. Unless `is_inline`, the mark counts only at the beginning of
    a line, after optional white space.
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
    """Escape JSON without changing its meaning. No mark is left, even if a program breaks the line."""
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
            pattern = f"({start}{re.escape(before)}){re.escape(sign)}(?={re.escape(rest)}{mark.following})"
            # A replacement needs a double backslash.
            text = re.sub(pattern, rf"\g<1>\{form.format(ord(sign))}", text)
    return text
