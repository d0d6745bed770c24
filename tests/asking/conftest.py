"""One rehearsal service, and one OpenBao where it is asked for; each test has an account of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sealpipe_rehearsal.running_service import RunningService
from secure_requests.conftest import call, call_at, job, proxied, service
from support.job import Job
from support.openbao import Bao, dev_server
from support.receiver import Receiver

__all__ = ["call", "call_at", "job", "proxied", "service"]


@pytest.fixture
def job_at(service: RunningService, tmp_path: Path) -> Callable[..., Job]:
    """Make a job that talks to a `Faulty`; keyword arguments make its key."""
    return lambda server, **key: Job(tmp_path, service, server.base_url, **key)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture(scope="session")
def bao() -> Iterator[Bao]:
    with dev_server() as bao:
        yield bao
