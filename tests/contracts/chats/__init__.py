"""A chat that shows HTML, one channel that is right, and channels that each make one mistake.

`test_broken_channels.py` says which test of the contract notices which.
"""

from __future__ import annotations

from collections.abc import Callable

from sealpipe.plugin import ChannelInfo, hookimpl

NAMES = (
    "careful",
    "repeating",
    "insisting",
    "raw",
    "trusting",
    "following",
    "asking",
    "quoting",
    "citing",
    "chatty",
)


@hookimpl
def sealpipe_channels(register: Callable[[ChannelInfo], None]) -> None:
    """The channels, whose class is the name with a capital."""
    module = f"{__name__}.channels"
    for name in NAMES:
        register(
            ChannelInfo(
                name, "a note", f"{module}:{name.capitalize()}", f"{module}:ChatSettings", to="NAME"
            )
        )
