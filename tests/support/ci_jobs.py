"""Jobs of CI systems, for tests of what goes to stdout there; and a sealpipe whose batches are at a
later time.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from sealpipe.ci_systems import CI_SYSTEMS, CISystem, list_variables
from support.commands import LANG, SEALPIPE, open_door
from support.fake_web import Asked, FakeWeb, Reply
from support.forked import UNLIKE
from support.parts import shebang
from support.terminal import ABROAD, Done, Terminal

SHARE = ("share", "-f", "Note=text:canary-of-the-gate")
ROWS = {row.name: row for row in CI_SYSTEMS}
MASKING = [row for row in CI_SYSTEMS if row.mask]
SOME = [ROWS[name] for name in ("github", "gitea", "azure", "gitlab", "jenkins", "other")]
"""One of each kind."""
SIGNS = [(row, sign) for row in CI_SYSTEMS for sign in row.indicators]


def titled(value: object) -> str:
    """The id of a test's parameter."""
    return value.name if isinstance(value, CISystem) else str(value)


def job_token(audience: str, subject: str = "deploy") -> str:
    """A job's OIDC token, without a signature that anything here would check."""
    claims = (
        base64.urlsafe_b64encode(json.dumps({"aud": audience, "sub": subject}).encode())
        .decode()
        .rstrip("=")
    )
    return f"e30.{claims}.c2lnbmF0dXJl"


def job(row: CISystem, sign: str = "") -> dict[str, str]:
    """The variables of a job there, and links that are no rehearsal's."""
    name, _, value = (sign or row.indicators[0]).partition("=")
    return {name: value or "true", **ABROAD}


def redirected(user: Terminal, streams: str, *words: str, **environ: str) -> Done:
    """Run `sealpipe WORDS`, its streams as a shell is told."""
    return user.run(["sh", "-c", f'exec "$@" {streams}', "sh", *SEALPIPE, *words], environ=environ)


def later_sealpipe(folder: Path, seconds: int, *, postgres: bool = False) -> Path:
    """A `sealpipe` for which the database's clock is ahead: what a batch waits for comes without
    the wait.
    """
    kind = "PostgresDatabase" if postgres else "SqliteDatabase"
    folder.mkdir()
    file = folder / "sealpipe"
    file.write_text(f"""{shebang("-P")}import sys
from sealpipe.__main__ import main
from sealpipe.batch.database.{"postgres" if postgres else "sqlite"} import {kind}
read_clock = {kind}.read_clock
{kind}.read_clock = lambda self: read_clock(self) + {seconds * 1_000_000}
sys.exit(main())
""")
    file.chmod(0o755)
    return file


def forked_sealpipe(folder: Path) -> Path:
    """A program `sealpipe` for shells: its commands are forked, as `support.commands.run` forks
    them, not started.
    """
    file = folder / "sealpipe"
    file.write_text(f"""{shebang("-IS")}import os, socket, sys
if os.environ.get("LANG") != {LANG!r} or any(name.startswith({UNLIKE!r}) for name in os.environ):
    os.execv({sys.executable!r}, [{sys.executable!r}, "-m", "sealpipe", *sys.argv[1:]])
umask = os.umask(0)
os.umask(umask)
variables = [name + b"=" + value for name, value in os.environb.items()]
words = [os.fsencode(word) for word in sys.argv[1:]]
told = bytes(1).join([b"%d" % umask, b"", b"%d" % len(words), *words, *variables])
line = socket.socket(socket.AF_UNIX)
line.connect({str(open_door())!r})
socket.send_fds(line, [len(told).to_bytes(8, "big")], [0, 1, 2, os.open(".", os.O_RDONLY)])
line.sendall(told)
code = int.from_bytes(line.recv(4, socket.MSG_WAITALL), "big", signed=True)
sys.exit(code if code >= 0 else 128 - code)
""")
    file.chmod(0o755)
    return file


def batch_file(channel: str) -> str:
    """A batch that asks one vendor for a password, by this channel."""
    return f"""
name = "vendors"
kind = "request"
key = "name"
[request]
ask = ["Password"]
send = ["{channel}"]
[[row]]
name = "acme"
"""


GITHUB = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_REPOSITORY": "acme/app",
    "GITHUB_RUN_ID": "77",
    "GITHUB_RUN_ATTEMPT": "2",
    "GITHUB_JOB": "deploy",
    "GITHUB_ACTOR": "mallory",
    "GITHUB_SERVER_URL": "https://github.example",
}
GITLAB = {
    "GITLAB_CI": "true",
    "CI_PROJECT_PATH": "acme/app",
    "CI_JOB_ID": "99",
    "GITLAB_USER_LOGIN": "eve",
    "CI_JOB_URL": "https://gitlab.example/acme/app/-/jobs/99",
}
AZURE = {
    "TF_BUILD": "True",
    "SYSTEM_COLLECTIONURI": "https://dev.azure.com/acme/",
    "SYSTEM_TEAMPROJECT": "hand over",
    "BUILD_BUILDID": "17",
    "SYSTEM_JOBID": "12f1170f-54f2-53f3-20dd-22fc7dff55f9",
    "BUILD_REQUESTEDFOR": "Ada",
}
BITBUCKET = {
    "CI": "true",
    "BITBUCKET_BUILD_NUMBER": "31",
    "BITBUCKET_REPO_FULL_NAME": "acme/app",
    "BITBUCKET_STEP_UUID": "{b7b7e8a4-9a9b-4d51-a3ec-6a4bd5b5d4a5}",
    "BITBUCKET_STEP_TRIGGERER_UUID": "{0e8f4a1d-54f2-4a8e-8f0e-1d2c3b4a5f60}",
}
BUILDKITE = {
    "CI": "true",
    "BUILDKITE": "true",
    "BUILDKITE_BUILD_ID": "4735ba57-80d0-46e2-8fa0-b28223a86586",
    "BUILDKITE_JOB_ID": "e44f9784-e20e-4b93-a21d-f41fd5869db9",
    "BUILDKITE_BUILD_URL": "https://buildkite.com/acme/app/builds/1514",
    "BUILDKITE_BUILD_CREATOR": "Carol Danvers",
    "BUILDKITE_AGENT_ACCESS_TOKEN": "canary-of-the-agents-own-token",
    "BUILDKITE_AGENT_JOB_API_SOCKET": "/tmp/job-api.sock",
}
CIRCLECI = {
    "CI": "true",
    "CIRCLECI": "true",
    "CIRCLE_WORKFLOW_ID": "0f2f0b2c-7a9a-4b6a-9d8e-5c1b7a3d2e4f",
    "CIRCLE_BUILD_NUM": "812",
    "CIRCLE_BUILD_URL": "https://circleci.com/gh/acme/app/812",
    "CIRCLE_USERNAME": "grace",
}
JENKINS = {
    "JENKINS_URL": "https://jenkins.example/",
    "JOB_NAME": "app/main",
    "BUILD_NUMBER": "153",
    "BUILD_ID": "153",
    "BUILD_URL": "https://jenkins.example/job/app/job/main/153/",
    "BUILD_USER_ID": "linus",
}
TEAMCITY = {
    "TEAMCITY_VERSION": "2026.1 (build 200000)",
    "TEAMCITY_PROJECT_NAME": "App",
    "TEAMCITY_BUILDCONF_NAME": "Deploy",
    "BUILD_NUMBER": "66",
    "BUILD_URL": "https://teamcity.example/build/901",
}
WOODPECKER = {
    "CI": "woodpecker",
    "CI_REPO": "acme/app",
    "CI_PIPELINE_NUMBER": "8",
    "CI_WORKFLOW_NUMBER": "1",
    "CI_PIPELINE_URL": "https://ci.example/repos/7/pipeline/8",
    "CI_PIPELINE_AUTHOR": "octocat",
}
JOBS = {
    "gitlab": GITLAB,
    "buildkite": BUILDKITE,
    "bitbucket": BITBUCKET,
    "circleci": CIRCLECI,
    "teamcity": TEAMCITY,
    "woodpecker": WOODPECKER,
    "azure": AZURE,
    "forgejo": {**GITHUB, "FORGEJO_ACTIONS": "true"},
    "gitea": {**GITHUB, "GITEA_ACTIONS": "true"},
    "github": GITHUB,
    "jenkins": JENKINS,
}
"""What each system's own pages say that a job has, without a token; by the name of its row."""


def with_one_sign(name: str) -> dict[str, str]:
    """A job of a system by one variable alone: those that tell it, too, are left out."""
    sign = ROWS[name].indicators[0].partition("=")[0]
    return {
        each: value
        for each, value in JOBS[name].items()
        if each == sign or each not in set(list_variables())
    }


Answer = Callable[[dict[str, list[str]], str], tuple[int, bytes]]
PLAIN = {"CI": "true", "BUILD_URL": "https://ci.example/job/app/12/"}


@pytest.fixture
def endpoint() -> Iterator[Callable[[Answer], dict[str, str]]]:
    """Start a fake of GitHub's token endpoint; the variables that a job with the permission has."""
    with ExitStack() as stack:

        def start(answer: Answer) -> dict[str, str]:
            server = stack.enter_context(_Tokens(answer))
            return GITHUB | {
                "ACTIONS_ID_TOKEN_REQUEST_URL": f"{server.base_url}/token?api-version=2.0",
                "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "runner-bearer",
            }

        yield start


class _Tokens(FakeWeb):
    def __init__(self, tell: Answer) -> None:
        super().__init__()
        self._tell = tell

    def answer(self, asked: Asked) -> Reply:
        return Reply(
            *self._tell(parse_qs(urlsplit(asked.target).query), asked.headers["authorization"])
        )
