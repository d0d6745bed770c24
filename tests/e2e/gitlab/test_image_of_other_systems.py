"""The image as the job image of other CI systems, started as each of them starts it:
docs/how-to/ci/images.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from e2e.gitlab.engine import Engine
from e2e.gitlab.gitlab_ci import IMAGE
from sealpipe_rehearsal.running_service import RunningService
from support.parts import ROOT
from support.terminal import addresses, opened

CANARY = "canary-of-a-share"
SHARE = "sealpipe share --field env:DB_PASSWORD 2>/dev/null"
PAGE = (ROOT / "docs/how-to/ci/images.md").read_text(encoding="utf-8")

Exec = Callable[..., str]


@pytest.fixture
def environ(service: RunningService) -> dict[str, str]:
    """What a job sets for its container."""
    key = service.create_key().reveal()
    return {
        **addresses(service),
        "SEALPIPE_API_KEY": key,
        "DB_PASSWORD": CANARY,
        "SEALPIPE_STATE_DIR": "/tmp/sealpipe",
    }


@contextmanager
def waiting(engine: Engine, *command: str, **options: Any) -> Iterator[Exec]:
    """A container that waits, and how a command is run in it."""
    container = engine.client.containers.run(
        IMAGE, list(command), detach=True, network_mode="host", **options
    )

    def call(*words: str, user: str = "", environ: dict[str, str] | None = None) -> str:
        code, output = container.exec_run(list(words), user=user, environment=environ)
        assert code == 0, output
        return bytes(output).decode()

    try:
        yield call
    finally:
        container.remove(force=True)


def test_the_tools_that_the_page_names_are_there_and_no_others(engine: Engine) -> None:
    named = re.findall(r"`([a-z0-9]+)`", PAGE.partition("It has ")[2].partition(".")[0])
    lacking = re.findall(r"`([a-z0-9]+)`", PAGE.partition("It does not have ")[2].partition(".")[0])
    script = "for each; do command -v $each > /dev/null && echo $each; done; true"
    found = engine.run("sh", "-c", script, "sh", *named, *lacking, network_mode="none").split()
    assert found == named
    assert engine.run("getconf", "GNU_LIBC_VERSION", network_mode="none").startswith("glibc ")
    assert engine.client.images.get(IMAGE).attrs["Config"]["Entrypoint"] in (None, [])


def test_jenkins_runs_cat_as_its_own_user_and_steps_beside_it(
    engine: Engine, service: RunningService, environ: dict[str, str]
) -> None:
    with waiting(
        engine, "cat", user="1000:1000", tty=True, stdin_open=True, working_dir="/tmp"
    ) as call:
        link = call("sh", "-e", "-c", SHARE, environ=environ)
    assert opened(service, link) == {"DB_PASSWORD": CANARY}


def test_azure_adds_its_user_to_a_container_that_root_started(
    engine: Engine, service: RunningService, environ: dict[str, str]
) -> None:
    with waiting(engine, "sleep", "300", user="0") as call:
        call("bash", "-c", "useradd -m -u 1001 vsts_azpcontainer && groupadd azure_pipelines_sudo")
        call("bash", "-c", "usermod -a -G azure_pipelines_sudo vsts_azpcontainer")
        call("su", "-c", "echo '%azure_pipelines_sudo ALL=(ALL:ALL) NOPASSWD:ALL' >> /etc/sudoers")
        link = call("bash", "--noprofile", "--norc", "-c", SHARE, user="1001", environ=environ)
    assert opened(service, link) == {"DB_PASSWORD": CANARY}


@pytest.mark.parametrize(
    ("shell", "options"),
    [
        pytest.param(
            ("/bin/sh", "-e", "-c"),
            {"user": "1000:1000", "init": True, "tty": True},
            id="Buildkite",
        ),
        pytest.param(("/bin/bash", "-eo", "pipefail", "-c"), {}, id="CircleCI"),
        pytest.param(("/bin/bash", "-e", "-c"), {"user": "0"}, id="Bitbucket"),
        pytest.param(("/bin/sh", "-c"), {"user": "0"}, id="TeamCity"),
    ],
)
def test_a_job_is_a_shell_in_the_image(
    engine: Engine,
    service: RunningService,
    environ: dict[str, str],
    shell: tuple[str, ...],
    options: dict[str, Any],
) -> None:
    link = engine.run(*shell, SHARE, environment=environ, network_mode="host", **options)
    assert opened(service, link) == {"DB_PASSWORD": CANARY}


def test_woodpecker_hands_over_a_script_in_a_variable(
    engine: Engine, service: RunningService, environ: dict[str, str]
) -> None:
    script = "c2VhbHBpcGUgc2hhcmUgLS1maWVsZCBlbnY6REJfUEFTU1dPUkQgMj4vZGV2L251bGwK"
    start = 'echo "$CI_SCRIPT" | base64 -d | /bin/sh -e'
    given = {**environ, "CI_SCRIPT": script, "CI": "woodpecker"}
    link = engine.run("/bin/sh", "-c", start, environment=given, user="0", network_mode="host")
    assert opened(service, link) == {"DB_PASSWORD": CANARY}


def test_a_rehearsal_needs_nothing_but_the_image(engine: Engine) -> None:
    script = (
        "SEALPIPE_SHARE_FIELD=env:NOT_SET sealpipe rehearse --job -- sealpipe share 2>/dev/null"
    )
    link = engine.run("sh", "-c", script, network_mode="none", user="1000:1000")
    assert link.startswith("http://127.0.0.1:")
