"""What the user's config file says of plugins: which may be loaded, and whose is taken where two have one name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sealpipe.errors import SettingError


def tables(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A table of the config that holds tables by name; empty where there is none. SettingError where it is none."""
    found = config.get(name, {})
    if not isinstance(found, Mapping):
        raise SettingError(f"the config's {name} is no table", remedy=f"write [{name}.NAME]")
    return found


def allowed(config: Mapping[str, Any]) -> list[str] | None:
    """The entry points that may be loaded; None for all. SettingError where it is no list of names."""
    found = config.get("allow_plugins")
    # One word would be read as a list of its letters, and allow nothing without a sign of why.
    if found is not None and not (isinstance(found, list) and all(isinstance(name, str) for name in found)):
        raise SettingError("the config's allow_plugins is no list of names", remedy='write allow_plugins = ["NAME"]')
    return found


def preferred(config: Mapping[str, Any]) -> dict[str, str]:
    """The entry point whose plugin is taken for a name, by `[plugins.NAME] from = "..."`."""
    named = {name: table["from"] for name, table in tables(config, "plugins").items() if _has_from(table)}
    for name, point in named.items():
        if not isinstance(point, str) or not point:
            raise SettingError(f"the config's plugins.{name}.from is no name", remedy="name a plugin's entry point")
    return named


def _has_from(table: object) -> bool:
    return isinstance(table, Mapping) and "from" in table
