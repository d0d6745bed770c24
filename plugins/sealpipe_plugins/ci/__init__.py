"""The built-in CI systems. Their modules are imported where this process runs in one."""

from __future__ import annotations

from collections.abc import Callable

from sealpipe.plugin import CIInfo, hookimpl


@hookimpl
def sealpipe_ci(register: Callable[[CIInfo], None]) -> None:
    """The descriptors."""
