"""The fixtures of these tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.gitlab import engine as engines
from e2e.gitlab.engine import Engine
from e2e.gitlab.gitlab_ci import Pipeline
from sealpipe_rehearsal.running_service import RunningService
from support.openbao import Bao, dev_server
from support.terminal import addresses, bare, one_service, service, user

__all__ = ["bare", "one_service", "service", "user"]


@pytest.fixture(scope="session")
def one_bao() -> Iterator[Bao]:
    with dev_server() as running:
        yield running


@pytest.fixture
def credential(service: RunningService) -> str:
    """A key at the service, as the project's masked variable has it."""
    return service.create_key().reveal()


@pytest.fixture
def pipeline(tmp_path: Path, service: RunningService, credential: str) -> Pipeline:
    """A project that may use the service."""
    return Pipeline(tmp_path / "gitlab", {**addresses(service), "SEALPIPE_API_KEY": credential})


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[Engine]:
    folder = tmp_path_factory.getbasetemp()
    run = folder if worker_id == "master" else folder.parent
    with engines.shared(run / "engine") as running:
        yield running
