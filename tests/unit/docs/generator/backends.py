"""The built-in plugins: the generated part of docs/reference/plugin-settings.md."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin

from sealpipe.plugin.settings import PluginSettings
from sealpipe.registry import Registry
from sealpipe.secret import Secret
from unit.docs.generator.markdown import code, escape, item, wrap

PRODUCTS = Path(__file__).resolve().parents[4] / "docs/products"
PAGES: Mapping[str, str] = {
    "azure_key_vault": "azure-key-vault",
    "pass_store": "pass",
    "postgres_role": "postgres-role",
}
"""Products whose page is not named like their folder."""


class Backend(NamedTuple):
    """The plugins that share settings, by the name that variables and the config file use."""

    name: str
    plugins: tuple[tuple[str, Any], ...]
    settings: type[PluginSettings] | None

    @property
    def page(self) -> str:
        """The name of its product's page; empty if it has none."""
        product = self.plugins[0][1].factory.split(".")[1]
        names = (self.name, PAGES.get(product, product))
        return next((name for name in names if (PRODUCTS / f"{name}.md").exists()), "")


@cache
def backends() -> tuple[Backend, ...]:
    """Return the backends with settings or parameters of their own."""
    found: dict[str, list[tuple[str, Any]]] = {}
    for each in Registry(environ={}).catalog.list_plugins():
        if not each.origin:
            found.setdefault(getattr(each.info, "backend", "") or each.info.name, []).append(
                (each.kind, each.info)
            )
    made = (
        Backend(name, tuple(plugins), _settings(plugins)) for name, plugins in sorted(found.items())
    )
    return tuple(
        each
        for each in made
        if each.settings or any(getattr(info, "params", {}) for _, info in each.plugins)
    )


def _settings(plugins: Iterable[tuple[str, Any]]) -> type[PluginSettings] | None:
    named = {info.settings for _, info in plugins if info.settings}
    assert len(named) < 2, named
    return pkgutil.resolve_name(named.pop()) if named else None


def page() -> str:
    """Return each backend with its plugins, their parameters, and its settings."""
    return "\n".join(map(_section, backends()))


def _section(backend: Backend) -> str:
    parts = [f"## {backend.name}\n"]
    if backend.page:
        parts.append(f"[How to use it](../products/{backend.page}.md)\n")
    parts.append("".join(_plugin(kind, info) for kind, info in backend.plugins))
    if backend.settings is not None:
        rows = (_setting(backend, backend.settings, name) for name in backend.settings.model_fields)
        parts += ["**Settings**\n", "".join(rows)]
    return "\n".join(parts)


def _plugin(kind: str, info: Any) -> str:
    extra = f" Needs `sealpipe[{info.extra}]`." if info.extra else ""
    title = "CI system" if kind == "ci" else kind
    text = item(f"{wrap(f'{title} {code(info.name)}: {escape(info.summary)}.{extra}')}\n")
    for name, about in getattr(info, "params", {}).items():
        text += f"  - {wrap(f'{code(name)}: {escape(about)}', '    ')}\n"
    return text


def _setting(backend: Backend, settings: type[PluginSettings], name: str) -> str:
    field = settings.model_fields[name]
    kind = _kind(field.annotation)
    own = settings.own_variables.get(name, ())
    prefix = f"SEALPIPE_PLUGIN_{backend.name.replace('-', '_')}__{name}".upper()
    variables = (
        [] if name in settings.file_only else [prefix, *([own] if isinstance(own, str) else own)]
    )
    places = [*map(code, variables), *(["config file"] if "secret" not in kind else [])]
    required = ", required" if field.is_required() else ""
    default = (
        f", default {code(str(field.default))}"
        if field.default != "" and _is_plain(field.default)
        else ""
    )
    return item(f"{wrap(f'{code(name)} ({kind}{required}{default}): ' + ', '.join(places))}\n")


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float | Path)


KINDS: Mapping[type, str] = {
    Secret: "secret",
    bool: "true or false",
    int: "number",
    float: "number",
    Path: "path",
    str: "text",
    tuple: "list",
    dict: "table",
}


def _kind(annotation: Any) -> str:
    """What a setting takes, in words, from the type of its field."""
    types = (
        [each for each in get_args(annotation) if each is not NoneType]
        if NoneType in get_args(annotation)
        else []
    )
    kind = types[0] if len(types) == 1 else annotation
    if get_origin(kind) is Literal:
        return " or ".join(code(word) for word in get_args(kind) if word)
    of_secrets = " of secrets" if Secret in get_args(kind) else ""
    return KINDS[get_origin(kind) or kind] + of_secrets
