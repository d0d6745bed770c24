"""The hooks that a plugin can implement, and pluggy, which calls them: needed only for third parties."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import pluggy

from sealpipe.plugin import ChannelInfo, CIInfo, OutgoingAction, SinkInfo, SourceInfo

hookspec = pluggy.HookspecMarker("sealpipe")


@hookspec
def sealpipe_sources(register: Callable[[SourceInfo], None]) -> None:
    """Call `register` once for each source. Import and ask nothing here: descriptors are light."""


@hookspec
def sealpipe_sinks(register: Callable[[SinkInfo], None]) -> None:
    """Do the same for sinks."""


@hookspec
def sealpipe_channels(register: Callable[[ChannelInfo], None]) -> None:
    """Do the same for channels."""


@hookspec
def sealpipe_ci(register: Callable[[CIInfo], None]) -> None:
    """Do the same for CI systems."""


@hookspec
def sealpipe_commands(group: Any) -> None:
    """Add commands to the click group of the command line."""


@hookspec
def sealpipe_check_outgoing(plan: OutgoingAction, config: Mapping[str, Any], enforced: bool) -> None:  # noqa: FBT001 - as pluggy has it
    """A policy: raise `VetoError` if this is not allowed. It is asked before anything leaves, is stored or is ended.

    `config` is the policy's table; `enforced` is whether it is the machine's.
    """


@hookspec
def sealpipe_event(event: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    """An observer: it is notified of events, without values and fragments; `config` is its table."""


def make_manager() -> pluggy.PluginManager:
    """Make a plugin manager with these hooks and no plugin."""
    manager = pluggy.PluginManager("sealpipe")
    manager.add_hookspecs(sys.modules[__name__])
    return manager
