"""How the settings of a store are filled.

It imports pydantic: only where a backend has settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel, SecretBytes, SecretStr, ValidationError

from sealpipe.errors import SettingError, find_similar
from sealpipe.plugin.settings import PluginSettings
from sealpipe.registry.stores import Store
from sealpipe.secret import Secret


def fill_settings(model: type[PluginSettings], store: Store, environ: Mapping[str, str]) -> Any:
    """Return an instance of the settings class.

    SettingError names the wrong setting, never its value.
    """
    if plain_secrets := sorted(_find_plain_secrets(model, store.table)):
        raise SettingError(
            f"the config file holds {store.name}'s {plain_secrets[0]} in plain text",
            remedy="set it in the environment, or name a file that holds it",
        )
    for name in model.file_only:
        variable = store.get_variable(name)
        # As in `collect_values`: the part after the store's name is not case-sensitive.
        if any(
            present.upper() == variable or present.upper().startswith(f"{variable}__")
            for present in environ
        ):
            raise SettingError(
                f"{variable} is set, but the environment cannot set {store.name}'s {name}",
                remedy=f"write {name} into the config file, and unset the variable",
            )
    values = store.collect_values(environ, model.own_variables)
    for name, words in model.file_only_values.items():
        if values.get(name) in words and store.table.get(name) not in words:
            raise SettingError(
                f"only the config file can set {store.name}'s {name} to {values[name]}, "
                f"and {store.get_variable(name)} does",
                remedy=(
                    f"write {name} into the config file's table [{store.heading}], and unset "
                    "the variable"
                ),
            )
    try:
        return model(**values)
    except ValidationError as error:
        # Only location, type and the choices of a Literal: the error's other parts can contain the
        # input.
        errors = error.errors(include_input=False, include_url=False)
        # unknown names first: one may be a misspelling of a missing name
        first = min(errors, key=lambda each: each["type"] != "extra_forbidden")
        made = [
            _make_error(store, each, model)
            for each in errors
            if each["type"] == first["type"] == "missing"
        ]
    if len(made) > 1:
        raise SettingError(
            "; ".join(each.message for each in made), remedy="; ".join(each.remedy for each in made)
        )
    raise _make_error(store, first, model)


def _find_plain_secrets(model: type[BaseModel], table: Mapping[str, Any]) -> Iterator[str]:
    """Yield the settings in a table that are secrets by their type.

    A Secret in it, or in a model in it.
    """
    for name, field in model.model_fields.items():
        if name not in table:
            continue
        for kind in _list_classes(field.annotation):
            if issubclass(kind, Secret | SecretStr | SecretBytes):
                yield name
            elif issubclass(kind, BaseModel):
                yield from (
                    f"{name}.{each}"
                    for nested in _find_tables(table[name])
                    for each in _find_plain_secrets(kind, nested)
                )


def _list_classes(annotation: Any) -> Iterator[type]:
    """Yield the classes in a type such as `Secret | None`, `dict[str, Secret]` or an alias."""
    annotation = getattr(annotation, "__supertype__", getattr(annotation, "__value__", annotation))
    if isinstance(annotation, type) and not get_args(annotation):
        yield annotation
    for part in get_args(annotation):
        yield from _list_classes(part)


def _find_tables(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield the tables that may be a model: the value itself, or those in it."""
    if isinstance(value, Mapping):
        yield value
    for part in (
        value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    ):
        yield from _find_tables(part)


def _make_error(
    store: Store, first: Mapping[str, Any], model: type[PluginSettings]
) -> SettingError:
    name = ".".join(str(part) for part in first["loc"]) or "settings"
    if first["loc"] and first["loc"][0] in model.file_only:
        what = {"extra_forbidden": "does not exist", "missing": "is missing"}.get(
            first["type"], "cannot be used"
        )
        return SettingError(
            f"the config file's {store.heading}.{name[:80]} {what} ({first['type']})",
            remedy="correct it there",
        )
    if first["type"] == "extra_forbidden":
        near = find_similar(name, model.model_fields)
        hint = (
            f"did you mean {near[0]}?"
            if near
            else f"there are {', '.join(sorted(model.model_fields))}"
        )
        return SettingError(f"the store {store.name} has no setting {name[:40]}", remedy=hint)
    variables = model.own_variables.get(name, ()) if store.is_default else ()
    names = (store.get_variable(name), *((variables,) if isinstance(variables, str) else variables))
    remedy = f"set {' or '.join(names)}"
    if first["type"] == "missing":
        return SettingError(f"the store {store.name} lacks the setting {name}", remedy=remedy)
    choices = first.get("ctx", {}).get("expected")
    if first["type"] in ("literal_error", "enum") and choices:
        remedy += f" to {choices}"
    return SettingError(
        f"the store {store.name} has an invalid value for {name} ({first['type']})", remedy=remedy
    )
