"""The hooks that a plugin can implement (DESIGN section 5), and the commands that plugins add by one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import pluggy

from sealpipe.errors import PayloadTooLargeError, PluginError
from sealpipe.plugin import ChannelInfo, CIInfo, Outgoing, SinkInfo, SourceInfo
from sealpipe.registry.calls import call_plugin

if TYPE_CHECKING:
    from sealpipe.registry.catalog import Catalog

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
def sealpipe_check_outgoing(plan: Outgoing, config: Mapping[str, Any], enforced: bool) -> None:  # noqa: FBT001 - as pluggy has it
    """A policy: raise `VetoError` where this may not be done. Asked before anything leaves, is stored or is ended.

    `config` is its table; `enforced` tells that it is the machine's.
    """


@hookspec
def sealpipe_event(event: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    """An observer: told what happened, without values and without fragments; `config` is its table."""


HOOK = "sealpipe_commands"


class Group(Protocol):
    """What a plugin is handed: a click group, of which only the commands are taken."""

    @property
    def commands(self) -> Mapping[str, Any]:
        """By name."""
        ...


G = TypeVar("G", bound=Group)


class PluginCommand(NamedTuple):
    """A command of a plugin (the name of its entry point), and the distribution that this came with."""

    command: Any
    plugin: str
    origin: str
    version: str


def plugin_commands(catalog: Catalog, group: Callable[[], G], taken: Callable[[str], bool]) -> dict[str, PluginCommand]:
    """Every command of every third-party plugin, by name. `taken` tells the names that are ours.

    `group` makes an empty group for each: what breaks in one takes nothing from another. Problems are the catalog's.
    """
    found: dict[str, PluginCommand] = {}
    for plugin, (origin, version) in catalog.third_parties().items():
        own = group()
        module = catalog.module(plugin)
        try:
            call_plugin(plugin, partial(catalog.only(module, HOOK), group=own), _commands_error)
        except (PluginError, PayloadTooLargeError) as error:
            catalog.problems[plugin] = error.message
            continue
        for name, command in own.commands.items():
            if taken(name) or name in found:
                catalog.problems[plugin] = f"has a command named {name}, which already exists"
            else:
                found[name] = PluginCommand(command, plugin, origin, version)
    return found


def _commands_error(kind: str) -> PluginError:
    return PluginError(f"could not add its commands ({kind})")
