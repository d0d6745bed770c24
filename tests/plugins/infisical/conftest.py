"""The fake of Infisical, and registries on it, which are closed after each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from plugins.infisical.fake_infisical import TOKEN, FakeInfisical
from sealpipe.network.plugin_network import PluginNetwork
from sealpipe.registry import Registry
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
    made: list[Registry] = []

    def make(token: str = TOKEN, **environ: str) -> Registry:
        network = PluginNetwork(None)
        login = {"INFISICAL_TOKEN": token} if token else {}
        whole = {"INFISICAL_API_URL": f"{fake.base_url}/api", **login, **environ}
        made.append(Registry(environ=whole, network=lambda: network))
        return made[-1]

    yield make
    for each in made:
        each.close()
