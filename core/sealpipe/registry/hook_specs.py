"""The hooks that a plugin can implement (DESIGN section 5), and pluggy, which calls them: only third parties."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import pluggy

from sealpipe.plugin import ChannelInfo, CIInfo, OutgoingAction, SinkInfo, SourceInfo

hookspec = pluggy.HookspecMarker("sealpipe")


@hookspec
def sealpipe_sources(register: Callable[[SourceInfo], None]) -> None:
    """Call `register` once for each source. Nothing is imported or asked here: descriptors are light."""


@hookspec
def sealpipe_sinks(register: Callable[[SinkInfo], None]) -> None:
    """The same for sinks."""


@hookspec
def sealpipe_channels(register: Callable[[ChannelInfo], None]) -> None:
    """The same for channels."""


@hookspec
def sealpipe_ci(register: Callable[[CIInfo], None]) -> None:
    """The same for CI systems."""


@hookspec
def sealpipe_commands(group: Any) -> None:
    """Add commands to the click group of the command line."""


@hookspec
def sealpipe_check_outgoing(plan: OutgoingAction, config: Mapping[str, Any], enforced: bool) -> None:  # noqa: FBT001 - as pluggy has it
    """A policy: raise `VetoError` where this may not be done. Asked before anything leaves, is stored or is ended.

    `config` is its table; `enforced` tells that it is the machine's.
    """


@hookspec
def sealpipe_event(event: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    """An observer: told what happened, without values and without fragments; `config` is its table."""


def make_manager() -> pluggy.PluginManager:
    """Make a manager that knows these hooks and no plugin."""
    manager = pluggy.PluginManager("sealpipe")
    manager.add_hookspecs(sys.modules[__name__])
    return manager
