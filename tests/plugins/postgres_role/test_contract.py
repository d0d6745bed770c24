"""The contract of sinks, for roles of a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest

from sealpipe.plugin import Mode, WriteResult
from sealpipe.registry import Registry
from sealpipe.testing import SinkContract
from support.roles import ADMIN_PASSWORD, Roles


class TestPostgresRole(SinkContract):
    name = "postgres-role"
    single = True

    @pytest.fixture(autouse=True)
    def server_with_roles(self, roles: Roles) -> Iterator[None]:
        self.roles = roles
        self.seen: set[str] = set()
        self.open: list[Registry] = []
        yield
        for registry in self.open:
            registry.close()

    def registry_in(self, environ: Mapping[str, str]) -> Registry:
        self.open.append(super().registry_in(environ))
        return self.open[-1]

    @pytest.fixture
    def environ(self, roles: Roles) -> Mapping[str, str]:
        return roles.environ()

    def target(self) -> str:
        return self.roles.create()

    def put(
        self,
        registry: Registry,
        body: str,
        values: Mapping[str, str],
        mode: Mode,
        marker: str = "m1",
    ) -> WriteResult:
        self.seen.update(values.values())
        return super().put(registry, body, values, mode, marker)

    def rotate(self, body: str, key: str, value: str) -> None:
        del key
        self.seen.add(value)
        self.roles.set(body, value)

    def stored(self, body: str) -> Mapping[str, bytes]:
        """The one password that gets in, of those that were ever tried."""
        accepted = [each.encode() for each in self.seen if self.roles.accepts(body, each)]
        return dict(zip(self.keys[:1], accepted, strict=False))

    def secrets(self) -> Sequence[str]:
        return [ADMIN_PASSWORD]
