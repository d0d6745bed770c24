"""Sinks of a real PostgreSQL's roles."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from sealpipe.network.plugin_network import PluginNetwork
from sealpipe.plugin import Mode, Secret, SinkField, WriteResult
from sealpipe.reference import parse
from sealpipe.registry import Registry
from sealpipe.registry.sinks import write_fields
from support.roles import roles
from support.terminal import bare, one_service, service, user

__all__ = ["bare", "one_service", "roles", "service", "user"]


@pytest.fixture
def password() -> str:
    return f"canary-{secrets.token_hex(8)}"


class Sinks:
    """Sinks as the core makes them, closed after the test."""

    def __init__(self) -> None:
        self._open: list[Registry] = []

    def registry(
        self,
        environ: Mapping[str, str],
        config: Mapping[str, Any] | None = None,
        ca_file: Path | None = None,
        deadline: float = 60,
    ) -> Registry:
        network = PluginNetwork(ca_file)
        self._open.append(
            Registry(
                environ=environ,
                config=lambda: config or {},
                network=lambda: network,
                deadline=deadline,
            )
        )
        return self._open[-1]

    def put(
        self,
        environ: Mapping[str, str],
        role: str,
        value: str | bytes,
        mode: Mode = "create",
        marker: str = "m1",
        **options: Any,
    ) -> WriteResult:
        """Store a value in `postgres-role:ROLE`, or in the store that `role` names before its
        colon.
        """
        registry = self.registry(environ, **options)
        ref = parse(role if ":" in role else f"postgres-role:{role}")
        fields = [SinkField("", Secret(value))]
        return write_fields(registry, ref.name, registry.locate(ref, "sink"), fields, mode, marker)

    def close(self) -> None:
        for registry in self._open:
            registry.close()


@pytest.fixture
def sinks() -> Iterator[Sinks]:
    made = Sinks()
    yield made
    made.close()
