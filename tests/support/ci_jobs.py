"""Jobs of CI systems, for tests of what goes to stdout there; and a sealpipe whose batches are at a later time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from sealpipe.ci_systems import CI_SYSTEMS, CISystem
from support.commands import SEALPIPE
from support.fake_web import Asked, FakeWeb, Reply
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


def job(row: CISystem, sign: str = "") -> dict[str, str]:
    """The variables of a job there, and links that are no rehearsal's."""
    name, _, value = (sign or row.indicators[0]).partition("=")
    return {name: value or "true", **ABROAD}


def redirected(user: Terminal, streams: str, *words: str, **environ: str) -> Done:
    """Run `sealpipe WORDS`, its streams as a shell is told."""
    return user.run(["sh", "-c", f'exec "$@" {streams}', "sh", *SEALPIPE, *words], environ=environ)


def later_sealpipe(folder: Path, seconds: int, *, postgres: bool = False) -> Path:
    """A `sealpipe` for which the database's clock is ahead: what a batch waits for comes without the wait."""
    kind = "PostgresDatabase" if postgres else "SqliteDatabase"
    folder.mkdir()
    file = folder / "sealpipe"
    file.write_text(f"""#!{sys.executable} -P
import sys
from sealpipe.__main__ import main
from sealpipe.batch.database.{"postgres" if postgres else "sqlite"} import {kind}
read_clock = {kind}.read_clock
{kind}.read_clock = lambda self: read_clock(self) + {seconds * 1_000_000}
sys.exit(main())
""")
    file.chmod(0o755)
    return file


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
        return Reply(*self._tell(parse_qs(urlsplit(asked.target).query), asked.headers["authorization"]))
