"""Calls of sinks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from sealpipe.errors import PayloadTooLargeError, PluginError
from sealpipe.plugin import Locator, Mode, Sink, SinkField, WriteResult
from sealpipe.registry import Registry
from sealpipe.registry.safe_calls import call_plugin

T = TypeVar("T")


def describe_write(registry: Registry, name: str, locator: Locator, mode: Mode) -> str:
    """Describe what the sink would do, without asking a backend.

    Raises PluginError, SettingError.
    """
    return str(_call_sink(registry, name, locator, lambda sink: sink.describe(locator, mode)))


def write_fields(
    registry: Registry,
    name: str,
    locator: Locator,
    fields: Sequence[SinkField],
    mode: Mode,
    marker: str,
) -> WriteResult:
    """Write the fields into the sink. Raises PluginError."""

    def write(sink: Sink) -> object:
        return sink.put(locator, fields, mode=mode, marker=marker)

    receipt = _call_sink(registry, name, locator, write, is_changing=True)
    if not isinstance(receipt, WriteResult):
        raise PluginError(
            (
                f"the sink {name} returned {type(receipt).__name__} for {locator}: it is "
                "unknown what it stored"
            ),
            locator=locator.text,
        )
    return receipt


def _call_sink(
    registry: Registry,
    name: str,
    locator: Locator,
    call: Callable[[Sink], T],
    *,
    is_changing: bool = False,
) -> T:
    failure: PluginError
    try:
        sink = registry.sink(name)  # its error, such as a missing package, names the target, too
        return call_plugin(f"the sink {name}", lambda: call(sink), is_changing=is_changing)
    except PayloadTooLargeError as error:
        failure = PluginError(error.message, remedy=error.remedy)
    except PluginError as error:
        failure = error
    failure.locator = failure.locator or locator.text
    raise failure
