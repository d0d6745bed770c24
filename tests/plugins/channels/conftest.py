"""The rehearsal service and a user's terminal; sockets are closed after each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plugins.channels.using import Using
from support.storing import hub, lab
from support.terminal import bare, one_service, service, user

__all__ = ["bare", "hub", "lab", "one_service", "service", "user"]


@pytest.fixture(autouse=True)
def _closing() -> Iterator[None]:
    yield
    while Using.open:
        Using.open.pop().http().close()
