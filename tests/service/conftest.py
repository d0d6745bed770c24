"""One service for all tests of this folder, forgotten between them, and callers that close their
sockets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sealpipe_rehearsal.running_service import RunningService
from sealpipe_rehearsal.server import start
from service.callers import NOON, Api
from support.terminal import extended, one_service, service

__all__ = ["extended", "one_service", "service"]


@pytest.fixture(scope="session", autouse=True)
def store(pytestconfig: pytest.Config) -> Iterator[None]:
    """What the services of this folder store in: `--store`."""
    if pytestconfig.getoption("--store") == "sqlite":
        yield
        return
    # here, for its import of SQLAlchemy
    from service.on_postgresql import rehearse_on_postgresql

    with rehearse_on_postgresql():
        yield


@pytest.fixture(scope="module")
def at_noon() -> Iterator[RunningService]:
    with start(clock=lambda: NOON) as running:
        yield running


@pytest.fixture
def service_at_noon(at_noon: RunningService) -> RunningService:
    """A service whose clock stands at noon unless it is advanced."""
    at_noon.reset()
    return at_noon


@pytest.fixture
def caller() -> Iterator[Callable[..., Api]]:
    """Make an Api for a service; keyword arguments go to create_key."""
    made: list[Api] = []

    def make(running: RunningService, **key: Any) -> Api:
        made.append(Api(running, running.create_key(**key)))
        return made[-1]

    yield make
    for api in made:
        api.http.close()


@pytest.fixture
def api(service: RunningService, caller: Callable[..., Api]) -> Api:
    """A caller with every scope and custody `self`."""
    return caller(service)
