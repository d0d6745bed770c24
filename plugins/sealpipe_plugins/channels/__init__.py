"""The built-in channels. Their modules are imported when one of them is used."""

from __future__ import annotations

from collections.abc import Callable

from sealpipe.plugin import ChannelInfo, hookimpl


@hookimpl
def sealpipe_channels(register: Callable[[ChannelInfo], None]) -> None:
    """The descriptors."""
