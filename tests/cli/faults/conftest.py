"""One rehearsal service for all of these tests: each job has an account of its own, so none sees
another's shares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

import pytest

from cli.faults.ahead import ahead, selected
from cli.sweep import LINK_FILE, Sweep
from sealpipe_rehearsal.running_service import RunningService
from support.faults import reset_after, unauthorized
from support.faulty import Faulty
from support.job import Job, job, job_at, proxied, service
from support.strace import Point

__all__ = ["calls", "calls_to_file", "job", "job_at", "lost", "proxied", "service"]

Lost = Callable[..., tuple[Job, Faulty]]


@pytest.fixture(scope="module")
def outcomes(
    request: pytest.FixtureRequest,
    service: RunningService,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, Future[Any]]]:
    """What the module's `carry_out` returns of each row of its table, by the row as text; see
    `ahead.py`.
    """
    carry_out = request.module.carry_out
    with ahead(
        (str(row), row, partial(carry_out, row, tmp_path_factory.mktemp("job"), service))
        for row in selected(request, "row")
    ) as begun:
        yield begun


@pytest.fixture(scope="session")
def calls(service: RunningService, tmp_path_factory: pytest.TempPathFactory) -> list[Point]:
    """The system calls of an undisturbed share, from the moment it touches its state folder."""
    return Sweep(service).points(tmp_path_factory.mktemp("calls"))


@pytest.fixture(scope="session")
def calls_to_file(service: RunningService, tmp_path_factory: pytest.TempPathFactory) -> list[Point]:
    """The same of a share whose link goes to a file."""
    return Sweep(service, ("--link-file", LINK_FILE)).points(tmp_path_factory.mktemp("calls"))


@pytest.fixture
def lost(proxied: Callable[..., Faulty], job_at: Callable[..., Job]) -> Lost:
    """A share that was made and whose answer was lost, so that its entry is there; the fault is
    gone already.

    Arguments are more options for it; `environ` changes its environment, the others make its key.
    """

    def make(
        *words: str, environ: Mapping[str, Any] | None = None, **key: Any
    ) -> tuple[Job, Faulty]:
        # Final at once, and unclear all the same: no deadline to wait for.
        server = proxied(reset_after, then=unauthorized)
        job = job_at(server, **key)
        done = job.share(*words, **(environ or {}))
        assert (done.code, done.out) == (9, ""), done
        server.mend()
        return job, server

    return make
