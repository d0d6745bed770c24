"""The hooks that a plugin can implement. Each is called; one that is not yet is not here yet."""

from __future__ import annotations

from collections.abc import Callable

import pluggy

from sealpipe.plugin import SourceInfo

hookspec = pluggy.HookspecMarker("sealpipe")


@hookspec
def sealpipe_sources(register: Callable[[SourceInfo], None]) -> None:
    """Call `register` once for each source. Nothing is imported or asked here: descriptors are light."""
