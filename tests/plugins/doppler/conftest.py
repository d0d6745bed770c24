"""The fake of Doppler, and the store on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plugins.doppler.fake_doppler import FakeDoppler
from support.storing import job
from support.terminal import bare, one_service, service, user

__all__ = ["bare", "job", "one_service", "service", "user"]


@pytest.fixture
def fake() -> Iterator[FakeDoppler]:
    with FakeDoppler() as fake:
        yield fake
