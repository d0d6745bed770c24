"""The plugin of the locker; its sink imports an HTTP library, and is loaded on first use."""

from __future__ import annotations

from collections.abc import Callable

from sealpipe.plugin import TEXT, SinkInfo, hookimpl


@hookimpl
def sealpipe_sinks(register: Callable[[SinkInfo], None]) -> None:
    register(
        SinkInfo("locker", "a box of the locker", "support.locker:Locker", capabilities=(TEXT,))
    )
