"""The fixtures of these tests: a user at a rehearsal service, and somebody who takes webhooks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.fake_web import Receiver
from support.terminal import bare, one_service, service, user

__all__ = ["bare", "one_service", "receiver", "service", "user"]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running
