"""Sinks in use: what one would do, and what it has done, whatever the plugin says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from sealpipe.errors import PayloadTooLargeError, PluginError
from sealpipe.plugin import Locator, Mode, Receipt, Stored
from sealpipe.registry import Registry
from sealpipe.registry.guard import guarded

T = TypeVar("T")


def describe(registry: Registry, name: str, locator: Locator, mode: Mode) -> str:
    """What the sink would do. Nobody is asked. Raises PluginError, ReferenceSyntaxError, SettingError."""
    sink = registry.sink(name)
    return str(_located(name, locator, lambda: sink.describe(locator, mode)))


def store(
    registry: Registry, name: str, locator: Locator, fields: Sequence[Stored], mode: Mode, marker: str
) -> Receipt:
    """Have the sink store the fields. Blocks. Raises PluginError."""
    sink = registry.sink(name)
    receipt = _located(name, locator, lambda: sink.put(locator, fields, mode=mode, marker=marker))
    if not isinstance(receipt, Receipt):
        raise PluginError(
            f"the sink {name} answered {locator} with {type(receipt).__name__}: nobody knows what it has stored",
            locator=locator.text,
        )
    return receipt


def _located(name: str, locator: Locator, call: Callable[[], T]) -> T:
    failed: PluginError
    try:
        return guarded(f"the sink {name}", call)
    except PayloadTooLargeError as error:
        failed = PluginError(error.message, remedy=error.remedy)
    except PluginError as error:
        failed = error
    failed.locator = failed.locator or locator.text
    raise failed
