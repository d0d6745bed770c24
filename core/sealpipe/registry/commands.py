"""The commands of third-party plugins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from sealpipe.errors import PayloadTooLargeError, PluginError
from sealpipe.registry.catalog import Catalog
from sealpipe.registry.safe_calls import call_plugin

HOOK: Final = "sealpipe_commands"


class Group(Protocol):
    """A click group for a plugin's commands; only the commands are used."""

    @property
    def commands(self) -> Mapping[str, Any]:
        """The commands by name."""
        ...


G = TypeVar("G", bound=Group)


class PluginCommand(NamedTuple):
    """A plugin's command (the name of its entry point), and its distribution."""

    command: Any
    plugin: str
    origin: str
    version: str


def collect_commands(
    catalog: Catalog, group: Callable[[], G], is_taken: Callable[[str], bool]
) -> dict[str, PluginCommand]:
    """Return every command of every third-party plugin, by name.

    `is_taken` tells which names are built in.

    `group` makes an empty group for each plugin, so that one plugin's failure does not affect
    others. Problems are added to the catalog.
    """
    commands: dict[str, PluginCommand] = {}
    for plugin, (origin, version) in catalog.list_third_parties().items():
        plugin_group = group()
        module = catalog.get_module(plugin)
        try:
            call_plugin(
                plugin,
                partial(catalog.isolate_hook(module, HOOK), group=plugin_group),
                _make_commands_error,
            )
        except (PluginError, PayloadTooLargeError) as error:
            catalog.problems[plugin] = error.message
            continue
        for name, command in plugin_group.commands.items():
            if is_taken(name) or name in commands:
                catalog.problems[plugin] = f"has a command named {name}, which already exists"
            else:
                commands[name] = PluginCommand(command, plugin, origin, version)
    return commands


def _make_commands_error(kind: str) -> PluginError:
    return PluginError(f"could not add its commands ({kind})")
