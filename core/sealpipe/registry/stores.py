"""The configuration of plugins: named stores, which plugins may be loaded, policies and observers.

A named store is one backend with settings of its own, under a name that references use: in the
config file `[stores.prod-vault]` with `plugin = "vault"`, or in the environment
`SEALPIPE_STORE__PROD_VAULT__PLUGIN=vault`. A backend's own name is its default store.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from sealpipe.ci_systems import PLUGINS
from sealpipe.errors import NotConfiguredError, SettingError, find_similar, quote_input
from sealpipe.plugin.context import PLUGIN_PREFIX, STORE_PREFIX, name_variable, to_variable
from sealpipe.reference.text import NAME


class Store(NamedTuple):
    """A store: `plugin` is the name of its backend; `table` is its table in the config file."""

    name: str
    plugin: str
    table: Mapping[str, Any]
    is_default: bool = False

    @property
    def heading(self) -> str:
        """The heading of its table in the config file."""
        return f"{'plugins' if self.is_default else 'stores'}.{self.name}"

    def get_variable(self, setting: str) -> str:
        """Return the environment variable of one of its settings."""
        return name_variable(self.name, setting, named=not self.is_default)

    def collect_values(
        self, environ: Mapping[str, str], own_variables: Mapping[str, str | tuple[str, ...]]
    ) -> dict[str, Any]:
        """Collect its settings.

        Environment over config file over the backend's own variables (default store only).

        SettingError if two variables of a setting that nothing else sets have different values.
        """
        prefix = self.get_variable("")
        environment = {
            name.removeprefix(prefix).lower(): value
            for name, value in _read_variables(environ, prefix).items()
        }
        values = {**self.table, **environment}
        for name, variables in own_variables.items() if self.is_default else ():
            if name not in values and (value := _read_own(environ, variables)):
                values[name] = value
        return {name: value for name, value in values.items() if name != "plugin"}


def _read_own(environ: Mapping[str, str], variables: str | tuple[str, ...]) -> str:
    """Return the value that a backend's own variables have; empty if none is set."""
    names = (variables,) if isinstance(variables, str) else variables
    given = {name: value for name in names if (value := environ.get(name))}
    if len(set(given.values())) > 1:
        raise SettingError(
            f"{' and '.join(given)} are both set, and differ",
            remedy=f"unset {' or '.join(given)}, or make them equal",
        )
    return next(iter(given.values()), "")


def _read_variables(environ: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return what is set under names that begin with `prefix`, by name and in order.

    Asked name by name: another thread may take a variable out of `os.environ` meanwhile.
    """
    return {
        name: value
        for name in sorted(environ)
        if name.startswith(prefix) and (value := environ.get(name))
    }


def read_stores(config: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Store]:
    """Return every named store.

    Raises SettingError for a duplicate or invalid name, or a missing plugin.
    """
    stores: dict[str, Store] = {}
    names_by_variable: dict[str, str] = {}
    for name, table in read_tables(config, "stores").items():
        if not isinstance(table, dict):
            raise SettingError(
                f"the config's store {name!r} is not a table", remedy="write it as [stores.NAME]"
            )
        if other := names_by_variable.get(to_variable(name)):
            raise SettingError(
                f"the config's stores {other} and {name} have the same variables",
                remedy="rename one",
            )
        stores[name] = _make_store(name, table, table.get("plugin"))
        names_by_variable[to_variable(name)] = name
    variables = _read_variables(environ, STORE_PREFIX)
    for variable, value in variables.items():
        match = re.fullmatch(rf"{STORE_PREFIX}([A-Z0-9_]+?)__PLUGIN", variable)
        if match:
            name = names_by_variable.get(match[1], match[1].lower().replace("_", "-"))
            stores[name] = _make_store(name, stores[name].table if name in stores else {}, value)
    known = {to_variable(name) for name in stores}
    for variable in variables:
        if (owner := variable.removeprefix(STORE_PREFIX).partition("__")[0]) not in known:
            near = find_similar(owner, known)
            hint = f"did you mean {STORE_PREFIX}{near[0]}__...? Else " if near else ""
            raise SettingError(
                f"{variable} belongs to a store without a plugin",
                remedy=f"{hint}set {STORE_PREFIX}{owner}__PLUGIN to the name of one",
            )
    return stores


def check_store_names(stores: Mapping[str, Store], plugins: Iterable[str]) -> None:
    """Raise SettingError for a store that has the name of one plugin but uses another.

    Its name would mislead readers.

    Names are equal if their variables are equal: `aws-sm`, `AWS_SM`.
    """
    owners = {to_variable(plugin): plugin for plugin in plugins}
    for store in stores.values():
        owner = owners.get(to_variable(store.name))
        if owner is not None and store.plugin != owner:
            raise SettingError(
                (
                    f"the store {store.name} has the name of the plugin {owner}, but uses the "
                    f"plugin {quote_input(store.plugin)}"
                ),
                remedy=f"rename it, or set its plugin to {owner}",
            )


def make_default_store(plugin: str, config: Mapping[str, Any]) -> Store:
    """Make the store with its backend's own name."""
    table = read_tables(config, "plugins").get(plugin, {})
    if not isinstance(table, dict):
        raise SettingError(f"the config's plugins.{plugin} is not a table")
    return Store(
        plugin,
        plugin,
        {name: value for name, value in table.items() if name != "from"},
        is_default=True,
    )


def find_unknown_variables(
    environ: Mapping[str, str], backends: Iterable[str]
) -> list[tuple[str, str]]:
    """Find variables of default stores without a backend, with the nearest known one or ""."""
    known = {to_variable(name) for name in backends}
    named = [name for name in environ if name.startswith(PLUGIN_PREFIX)]
    present = [(name, *name.removeprefix(PLUGIN_PREFIX).partition("__")[::2]) for name in named]
    suggestion = {owner: find_similar(owner, known) for _, owner, _ in present}
    return [
        (name, f"{PLUGIN_PREFIX}{suggestion[owner][0]}__{setting}" if suggestion[owner] else "")
        for name, owner, setting in sorted(present)
        if owner not in known
    ]


def _make_store(name: str, table: Mapping[str, Any], plugin: object) -> Store:
    if not NAME.fullmatch(name):
        raise SettingError(f"the store {quote_input(name)} has an invalid name", remedy="rename it")
    if not isinstance(plugin, str) or not plugin:
        raise SettingError(
            f"the store {name} has no plugin", remedy=f'write plugin = "..." into [stores.{name}]'
        )
    return Store(name, plugin, table)


def read_tables(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a config table that holds tables by name; empty if it is missing.

    SettingError if it is no table.
    """
    tables = config.get(name, {})
    if not isinstance(tables, Mapping):
        raise SettingError(f"the config's {name} is not a table", remedy=f"write [{name}.NAME]")
    return tables


def read_allowed_plugins(config: Mapping[str, Any]) -> list[str] | None:
    """Return the entry points that may be loaded; None for all.

    SettingError if it is not a list of names.
    """
    names = config.get("allow_plugins")
    # iterating over a string would yield its letters and silently allow nothing
    if names is not None and not (
        isinstance(names, list) and all(isinstance(name, str) for name in names)
    ):
        raise SettingError(
            "the config's allow_plugins is not a list of names",
            remedy='write allow_plugins = ["NAME"]',
        )
    return names


def read_preferred_plugins(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the entry point whose plugin is used for a name, by `[plugins.NAME] from = "..."`.

    SettingError if it would replace a built-in CI system: users must not choose what masks secrets
    in a log.
    """
    preferred = {
        name: table["from"]
        for name, table in read_tables(config, "plugins").items()
        if _has_from(table)
    }
    for name, point in preferred.items():
        if not isinstance(point, str) or not point:
            raise SettingError(
                f"the config's plugins.{name}.from is not a name",
                remedy="name a plugin's entry point",
            )
        if name in PLUGINS:
            raise SettingError(
                (
                    f"the config's plugins.{name}.from replaces sealpipe's plugin for a CI "
                    "system, which is not allowed"
                ),
                remedy=f"remove `from` from [plugins.{name}]",
            )
    return preferred


def _has_from(table: object) -> bool:
    return isinstance(table, Mapping) and "from" in table


AUDIT_MODULE: Final = "sealpipe_plugins.audit.observer"
OWN_TABLES: Final = ("service", "batch")
"""The tables of `[enforce]` that fix addresses and limit batches: not policies or observers."""

BUILT_IN_HOOKS: Final[Mapping[str, str]] = {
    "audit": AUDIT_MODULE,
    "policy": "sealpipe_plugins.policy_file",
}


class PolicyHook(NamedTuple):
    """A policy or observer, and its table in the config.

    `enforced`: the machine's, not the user's.
    """

    name: str
    table: Mapping[str, Any]
    enforced: bool = False


def read_policy_hooks(
    user: Mapping[str, Any], machine: Mapping[str, Any]
) -> tuple[PolicyHook, ...]:
    """Read the policies and observers of both config files, the machine's first.

    SettingError, NotConfiguredError.
    """
    enforced = read_tables(machine, "enforce")
    hooks = [
        PolicyHook(name, table, enforced=True)
        for name, table in enforced.items()
        if name not in OWN_TABLES
    ]
    hooks += [PolicyHook(name, user[name]) for name in BUILT_IN_HOOKS if name in user]
    hooks += [PolicyHook(name, table) for name, table in read_tables(user, "oversight").items()]
    for hook in hooks:
        if not isinstance(hook.table, Mapping):
            raise NotConfiguredError(
                f"the config's {hook.name} is not a table", remedy=f"write [{hook.name}]"
            )
    return tuple(hooks)
