"""Commands of third-party plugins: looked up where a name is none of ours, and for `sealpipe plugins`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from sealpipe.errors import PayloadTooLargeError, PluginError
from sealpipe.registry.catalog import Catalog
from sealpipe.registry.guard import guarded

HOOK = "sealpipe_commands"


class Group(Protocol):
    """What a plugin is handed: a click group, of which only the commands are taken."""

    @property
    def commands(self) -> Mapping[str, Any]:
        """By name."""
        ...


G = TypeVar("G", bound=Group)


class Foreign(NamedTuple):
    """A command of a plugin (the name of its entry point), and the distribution that this came with."""

    command: Any
    plugin: str
    origin: str
    version: str


def commands(catalog: Catalog, group: Callable[[], G], taken: Callable[[str], bool]) -> dict[str, Foreign]:
    """Every command of every third-party plugin, by name. `taken` tells the names that are ours.

    `group` makes an empty group for each: what breaks in one takes nothing from another. Problems are the catalog's.
    """
    found: dict[str, Foreign] = {}
    for plugin, (origin, version) in catalog.third_parties().items():
        own = group()
        module = catalog.module(plugin)
        try:
            guarded(plugin, partial(catalog.only(module, HOOK), group=own), _told)
        except (PluginError, PayloadTooLargeError) as error:
            catalog.problems[plugin] = error.message
            continue
        for name, command in own.commands.items():
            if taken(name) or name in found:
                catalog.problems[plugin] = f"has a command named {name}, and there is one already"
            else:
                found[name] = Foreign(command, plugin, origin, version)
    return found


def _told(kind: str) -> PluginError:
    return PluginError(f"could not add its commands ({kind})")
