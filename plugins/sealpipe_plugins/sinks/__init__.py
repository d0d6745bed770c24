"""The built-in sinks. Their modules are imported when one of them is used."""

from __future__ import annotations

from collections.abc import Callable

from sealpipe.plugin import SinkInfo, hookimpl


@hookimpl
def sealpipe_sinks(register: Callable[[SinkInfo], None]) -> None:
    """The descriptors."""
    for info in SINKS:
        register(info)


_HERE = "sealpipe_plugins.sinks"
_BEHIND = "sealpipe_plugins.backends"

SINKS: tuple[SinkInfo, ...] = ()
"""By what they need: nothing, then what their backend does."""
