"""A backend's settings, filled from where they are set. What is wrong is named, and never shown."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from sealpipe.errors import SettingError
from sealpipe.plugin.settings import PluginSettings
from sealpipe.registry.stores import Store


def filled(model: type[PluginSettings], store: Store, environ: Mapping[str, str]) -> Any:
    """An instance of the settings class. SettingError names the setting that is wrong, never its value."""
    secrets = {name for name, field in model.model_fields.items() if "Secret" in repr(field.annotation)}
    if open_ones := sorted(secrets & store.table.keys()):
        raise SettingError(
            f"the config file holds {store.name}'s {open_ones[0]} in clear",
            remedy="set it in the environment, or name a file that holds it",
        )
    for name in model.file_only:
        variable = store.variable(name)
        if any(given == variable or given.startswith(f"{variable}__") for given in environ):
            raise SettingError(
                f"{variable} is set, and the environment cannot set {store.name}'s {name}",
                remedy=f"write {name} into the config file, and unset the variable",
            )
    try:
        return model(**store.values(environ, model.own_variables))
    except ValidationError as error:
        # Only location and type: the error's other parts can hold the input.
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    raise _wrong(store, first, model)


def _wrong(store: Store, first: Mapping[str, Any], model: type[PluginSettings]) -> SettingError:
    name = ".".join(str(part) for part in first["loc"]) or "settings"
    if first["loc"] and first["loc"][0] in model.file_only:
        table = f"{'plugins' if store.default else 'stores'}.{store.name}"
        what = {"extra_forbidden": "does not exist", "missing": "is missing"}.get(first["type"], "cannot be used")
        return SettingError(f"the config file's {table}.{name[:80]} {what} ({first['type']})", remedy="mend it there")
    if first["type"] == "extra_forbidden":
        near = get_close_matches(name, model.model_fields, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(model.model_fields))}"
        return SettingError(f"the store {store.name} has no setting {name[:40]}", remedy=hint)
    own = model.own_variables.get(name)
    where = store.variable(name)
    remedy = f"set {where}" + (f" or {own}" if own and store.default else "")
    if first["type"] == "missing":
        return SettingError(f"the store {store.name} lacks its setting {name}", remedy=remedy)
    return SettingError(f"the store {store.name} cannot use its setting {name} ({first['type']})", remedy=remedy)
