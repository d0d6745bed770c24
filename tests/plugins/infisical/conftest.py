"""The fake of Infisical, and registries on it, which are closed after each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from plugins.infisical.fake_infisical import TOKEN, FakeInfisical
from sealpipe.registry import Registry
from support.backends import registries
from support.storing import job
from support.terminal import bare, one_service, service, user

__all__ = ["bare", "job", "one_service", "service", "user"]

Registries = Callable[..., Registry]


@pytest.fixture
def fake() -> Iterator[FakeInfisical]:
    with FakeInfisical() as fake:
        yield fake


@pytest.fixture
def at(fake: FakeInfisical) -> Iterator[Registries]:
    with registries(INFISICAL_API_URL=f"{fake.base_url}/api") as make:
        yield lambda token=TOKEN, **environ: make(INFISICAL_TOKEN=token, **environ)
