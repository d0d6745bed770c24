"""Sinks as the core uses them: by name, with settings from an environment, through the door for
plugins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, TypeVar

import pytest

from sealpipe.errors import PluginError
from sealpipe.network.plugin_network import PluginNetwork
from sealpipe.plugin import Health, Locator, Mode, Secret, SinkField, WriteResult
from sealpipe.reference import parse
from sealpipe.registry import Registry
from sealpipe.registry.sinks import describe_write, write_fields
from sealpipe.testing.contract import error_text

CANARY = "Canary-6b1f_Zk3Qx0Vn8Jw"

E = TypeVar("E", bound=PluginError)


class Storing:
    """A sink by its settings in the environment.

    The networks that were made are closed after each test.
    """

    open: ClassVar[list[PluginNetwork]] = []

    def __init__(self, name: str, environ: Mapping[str, str]) -> None:
        self.name = name
        network = PluginNetwork(None)
        self.open.append(network)
        self.registry = Registry(environ=environ, network=lambda: network)

    def locator(self, target: str) -> Locator:
        return self.registry.locate(parse(f"{self.name}:{target}"), "sink")

    def put(
        self, target: str, mode: Mode = "create", marker: str = "m1", **values: str | bytes
    ) -> WriteResult:
        return self.put_all(target, values, mode, marker)

    def put_all(
        self,
        target: str,
        values: Mapping[str, str | bytes],
        mode: Mode = "create",
        marker: str = "m1",
    ) -> WriteResult:
        fields = [SinkField(key, Secret(value)) for key, value in values.items()]
        return write_fields(self.registry, self.name, self.locator(target), fields, mode, marker)

    def describe(self, target: str, mode: Mode = "create") -> str:
        return describe_write(self.registry, self.name, self.locator(target), mode)

    def check(self) -> Health:
        return self.registry.check("sink", self.name)

    def fails(
        self,
        kind: type[E],
        target: str,
        mode: Mode = "create",
        marker: str = "m1",
        **values: str | bytes,
    ) -> E:
        """The error that storing ends with: it holds nothing of a value, and says what to do."""
        with pytest.raises(kind) as caught:
            self.put_all(target, values or {"PW": CANARY}, mode, marker)
        assert type(caught.value) is kind
        assert CANARY not in error_text(caught.value)
        return caught.value
