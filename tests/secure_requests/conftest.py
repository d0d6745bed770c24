"""One rehearsal service; each test has an account of its own there, and both clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from sealpipe_rehearsal.running_service import RunningService
from sealpipe_rehearsal.server import start
from support.faulty import Fault, Faulty
from support.job import Caller, Job
from support.services import extended

__all__ = ["extended"]


@pytest.fixture(scope="session")
def service() -> Iterator[RunningService]:
    with start() as running:
        yield running


@pytest.fixture
def proxied(service: RunningService) -> Iterator[Callable[..., Faulty]]:
    """Make servers that stand before the service: `proxied(fault, ..., then=fault)`; see `Faulty`."""
    with ExitStack() as stack:

        def make(*faults: Fault, **options: Any) -> Faulty:
            return stack.enter_context(Faulty((service.address.host, service.address.port), *faults, **options))

        yield make


@pytest.fixture(params=[False, True], ids=["Client", "AsyncClient"])
def call_at(request: pytest.FixtureRequest, job: Job) -> Callable[..., Caller]:
    """Make a caller that talks to an address."""
    return lambda base_url, **more: Caller(job.api_key, base_url, job.service.link_base_url, request.param, **more)


@pytest.fixture
def call(call_at: Callable[..., Caller], service: RunningService) -> Caller:
    """A caller that talks to the service directly."""
    return call_at(service.base_url)


@pytest.fixture
def job(service: RunningService, tmp_path: Path) -> Job:
    """A job that talks to the service directly."""
    return Job(tmp_path, service)
