"""Fixtures: one rehearsal service for a folder's tests, forgotten between them, and a user's terminal. And refusals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from sealpipe_rehearsal.running_service import RunningService
from sealpipe_rehearsal.server import start
from support.terminal import Terminal


@pytest.fixture(scope="session")
def one_service() -> Iterator[RunningService]:
    with start() as running:
        yield running


@pytest.fixture
def service(one_service: RunningService) -> RunningService:
    """A rehearsal service that has seen nothing yet."""
    one_service.reset()
    return one_service


@pytest.fixture
def extended(service: RunningService) -> Iterator[RunningService]:
    """The same with what the specification does not show, as `--extended` offers it."""
    service.service.extended = True
    yield service
    service.service.extended = False


@pytest.fixture
def bare(tmp_path: Path) -> Terminal:
    """A terminal where nothing of sealpipe is set."""
    return Terminal(tmp_path)


@pytest.fixture
def user(bare: Terminal, service: RunningService) -> Terminal:
    """A terminal whose settings are at the service, with a key that has every scope and custody `self`."""
    return bare.at(service)


def refusal(response: httpx.Response) -> tuple[int, int]:
    """Status and error_code, once the envelope is found to be the flat one (specification: Response envelopes)."""
    envelope = response.json()
    assert envelope["success"] is False
    assert isinstance(envelope["message"], str)
    assert envelope.keys() <= {"success", "message", "error_code", "additional_data"}
    return response.status_code, envelope["error_code"]
