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
from service.four_processes import NOT_WITH_FOUR, SAME_IN_EACH
from support.terminal import extended, one_service, service

__all__ = ["extended", "one_service", "service"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With a server's four processes: leave out what is the same in each, and expect that what
    cannot run does not.
    """
    if config.getoption("--store") != "four":
        return
    same = tuple(f"tests/service/{name}" for name in SAME_IN_EACH)
    items[:] = [item for item in items if not item.nodeid.startswith(same)]
    for item in items:
        name = item.nodeid.removeprefix("tests/service/")
        if reason := NOT_WITH_FOUR.get(name) or NOT_WITH_FOUR.get(name.partition("[")[0]):
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


@pytest.fixture(scope="session", autouse=True)
def store(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What the services of this folder store in: `--store`."""
    match pytestconfig.getoption("--store"):
        case "sqlite":
            yield
        case "postgresql":
            # here, for its import of SQLAlchemy
            from service.on_postgresql import rehearse_on_postgresql

            with rehearse_on_postgresql():
                yield
        case "four":
            from service.at_four_processes import serve_with_four

            with serve_with_four(tmp_path_factory.mktemp("four")):
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
