"""Fixtures: the backends of `support.places`, each started once and only where a test asks for it.

They go with a conftest that has a `service`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plugins.aws.moto import Moto, moto
from plugins.k8s.cluster import Cluster, emulator
from sealpipe_rehearsal.running_service import RunningService
from support import places
from support.fake_github import FakeGitHub
from support.fake_gitlab import FakeGitLab
from support.job import Job
from support.openbao import Bao, dev_server
from support.secret_service import secret_service

Into = Callable[[str], places.Place]

NAMES = ("vault", "aws-sm", "aws-ssm", "k8s", "github-secret", "gitlab-variable", "keyring", "file", "dir", "dotenv")


@pytest.fixture
def job(service: RunningService, tmp_path: Path) -> Job:
    """For a folder whose conftest has none."""
    return Job(tmp_path, service)


@pytest.fixture
def group() -> str:
    """A name that no other test uses."""
    return f"g{secrets.token_hex(5)}"


@pytest.fixture(scope="session")
def bao() -> Iterator[Bao]:
    with dev_server() as bao:
        bao.call("POST", "sys/mounts/kv1", {"type": "kv", "options": {"version": "1"}})
        yield bao


@pytest.fixture
def vault(bao: Bao) -> places.InVault:
    return places.InVault(bao)


@pytest.fixture(scope="session")
def one_moto() -> Iterator[Moto]:
    with moto() as running:
        yield running


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with emulator() as url:
        made = Cluster(url)
        yield made
        made.close()


@pytest.fixture
def hub() -> Iterator[FakeGitHub]:
    with FakeGitHub() as server:
        yield server


@pytest.fixture
def lab() -> Iterator[FakeGitLab]:
    with FakeGitLab() as server:
        yield server


@pytest.fixture(scope="session")
def keyring_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    with secret_service(tmp_path_factory.mktemp("session")) as environ:
        yield environ


@pytest.fixture
def into(request: pytest.FixtureRequest, job: Job) -> Into:
    """A backend by its name; the job knows it, too."""
    get = request.getfixturevalue
    made: dict[str, Callable[[], places.Place]] = {
        "vault": lambda: places.InVault(get("bao")),
        "aws-sm": lambda: places.InAwsSm(get("one_moto")),
        "aws-ssm": lambda: places.InAwsSsm(get("one_moto")),
        "k8s": lambda: places.InKubernetes(get("cluster")),
        "github-secret": lambda: places.InGitHub(get("hub")),
        "gitlab-variable": lambda: places.InGitLab(get("lab")),
        "keyring": lambda: places.InKeyring(get("keyring_session")),
        "file": lambda: places.InFile(job.terminal.here),
        "dir": lambda: places.InDir(job.terminal.here),
        "dotenv": lambda: places.InDotenv(job.terminal.here),
    }

    def make(name: str) -> places.Place:
        place = made[name]()
        job.terminal.environ |= place.environ()
        return place

    return make
