"""The fixtures of these tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cli.fake_mcp import mcp
from sealpipe import Client
from sealpipe_rehearsal.running_service import RunningService
from support.faulty import Faulty
from support.terminal import bare, one_service, service, user

__all__ = ["bare", "mcp", "one_service", "service", "user"]


@pytest.fixture
def faulty(service: RunningService) -> Iterator[Faulty]:
    with Faulty(service.address) as server:
        yield server


@pytest.fixture
def client(service: RunningService, faulty: Faulty) -> Iterator[Client]:
    """A client whose requests go by way of `faulty`."""
    key = service.create_key().reveal()
    with Client(
        api_key=key, base_url=faulty.base_url, link_base_url=service.link_base_url, deadline=30
    ) as made:
        yield made
