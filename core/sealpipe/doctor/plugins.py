"""Checks of installed plugins, named stores, policies and observers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from sealpipe.ci_systems import is_set
from sealpipe.doctor.findings import Finding, report_failure, report_ok, report_warning, run_check
from sealpipe.errors import (
    PluginError,
    PolicyError,
    ReferenceSyntaxError,
    SealpipeError,
    SettingError,
    find_similar,
)
from sealpipe.plugin import CIInfo, OutgoingAction
from sealpipe.plugin.backends import NOT_CONTACTED
from sealpipe.plugin.context import name_variable
from sealpipe.registry import Registry
from sealpipe.registry.catalog import InstalledPlugin
from sealpipe.registry.policies import describe_audit
from sealpipe.registry.safe_calls import format_install_command
from sealpipe.registry.stores import PolicyHook, find_unknown_variables

_MAX_NAME_SHOWN = 40  # a longer text is not a name, and may be a secret typed by mistake


def find_missing_requirements(needs: Sequence[str]) -> list[str]:
    """Return the requirements whose distribution is not installed in any version."""
    missing = []
    for need in needs:
        try:
            version(re.split(r"[^A-Za-z0-9._-]", need.strip(), maxsplit=1)[0])
        except (PackageNotFoundError, ValueError):
            missing.append(need)
    return missing


def check_plugins(registry: Registry) -> Iterator[Finding]:
    """Count the installed plugins, and report every problem. No plugin is started."""
    plugins = registry.catalog.list_plugins()
    origins = sorted({each.origin for each in plugins if each.origin})
    for kind in dict.fromkeys(each.kind for each in plugins):
        names = [each.info.name for each in plugins if each.kind == kind]
        yield report_ok("plugins", f"{len(names)} of kind {kind}: {', '.join(names)}")
    if origins:
        yield report_ok("plugins", f"from {', '.join(origins)}")
    for plugin, problem in registry.catalog.problems.items():
        yield report_warning(
            f"plugin {plugin}", problem, "reinstall it with its dependencies, or ask its author"
        )
    for variable, suggestion in find_unknown_variables(
        registry.environ, {each.info.backend or each.info.name for each in plugins}
    ):
        remedy = f"did you mean {suggestion}?" if suggestion else "unset it"
        yield report_warning(f"variable {variable}", "no plugin has this name", remedy)


def check_plugin(registry: Registry, name: str) -> Iterator[Finding]:
    """Check a plugin or store by name.

    Its description, its requirements, and its own check, which reads no secret.
    """
    store = registry.stores.get(name)
    plugin = name if store is None else store.plugin
    plugins = [
        plugin_found
        for plugin_found in registry.catalog.list_plugins()
        if plugin_found.info.name == plugin
    ]
    if not plugins:
        raise _make_unknown_error(registry, name, plugin)
    for plugin_found in plugins:
        yield from _check_instance(registry, plugin_found, name)


def _make_unknown_error(registry: Registry, name: str, plugin: str) -> ReferenceSyntaxError:
    known = sorted(
        {each.info.name for each in registry.catalog.list_plugins()} | registry.stores.keys()
    )
    matches = find_similar(plugin, known, 3)
    remedy = (
        f"did you mean {' or '.join(matches)}?"
        if matches
        else "run `sealpipe plugins` to list what is installed"
    )
    if name != plugin:
        return ReferenceSyntaxError(
            (
                f"the store {name[:_MAX_NAME_SHOWN]} has the plugin "
                f"{plugin[:_MAX_NAME_SHOWN]}, which does not exist"
            ),
            remedy=remedy,
        )
    description = f"named {name}" if len(name) <= _MAX_NAME_SHOWN else "of that name"
    return ReferenceSyntaxError(
        f"there is no store, source, sink or channel {description}", remedy=remedy
    )


def _check_instance(registry: Registry, plugin: InstalledPlugin, name: str) -> Iterator[Finding]:
    check = f"{plugin.kind} {name}"
    yield report_ok(check, f"{plugin.info.summary} ({plugin.origin or 'built in'})")
    for need in find_missing_requirements(plugin.info.needs):
        yield report_warning(check, f"{need} is not installed", format_install_command(plugin.info))
    if isinstance(plugin.info, CIInfo):  # a CI system has no connection and no login to check
        runs = is_set(registry.environ, plugin.info.sign)
        yield report_ok(
            check,
            "this job runs on it"
            if runs
            else f"this process is not one of its jobs: {plugin.info.sign} is not set",
        )
        return
    try:
        health = registry.check(plugin.kind, name)
    except PluginError as error:
        yield report_failure(check, error)
        return
    if health.ok:
        nothing_to_contact = health.detail == NOT_CONTACTED and not plugin.info.settings
        yield report_ok(check, "ready" if nothing_to_contact else health.detail or "ready")
    else:
        yield report_failure(
            check, PluginError(health.detail or "it cannot be used now", locator=f"{name}:")
        )


def check_stores(registry: Registry) -> Iterator[Finding]:
    """Check the settings of each named store and of each plugin, as a command would."""
    plugins = [each for each in registry.catalog.list_plugins() if each.kind != "ci"]
    for name, store in registry.stores.items():
        matching = [each for each in plugins if each.info.name == store.plugin]
        if matching:
            missing = find_missing_requirements(matching[0].info.needs)
            if missing:
                what = f"{' and '.join(missing)} is not installed"
                yield report_warning(
                    f"store {name}", what, format_install_command(matching[0].info)
                )
            yield from _check_settings(registry, f"store {name}", {name: matching}, named=True)
        else:
            matches = find_similar(store.plugin, [each.info.name for each in plugins])
            remedy = (
                f"did you mean {matches[0]}?"
                if matches
                else "run `sealpipe plugins` to list what is installed"
            )
            error = SettingError(f"its plugin {store.plugin[:40]} does not exist", remedy=remedy)
            yield report_failure(f"store {name}", error)
    for backend, matching in _group_by_backend(plugins).items():
        if backend in registry.config.get("plugins", {}) or _is_set(registry.environ, backend):
            by_name = {each.info.name: [each] for each in matching}
            yield from _check_settings(registry, f"plugin {backend}", by_name, named=False)


def check_policies(
    registry: Registry, load: Callable[[], tuple[PolicyHook, ...]]
) -> Iterator[Finding]:
    """Check policies and observers.

    Every command calls them first, so an invalid one stops all commands.
    """
    hooks = load()
    for hook in hooks:
        check = f"{hook.name} (this machine's)" if hook.enforced else hook.name
        yield from run_check(check, partial(_check_policy, registry, hook, check))


def _check_policy(registry: Registry, hook: PolicyHook, check: str) -> Iterator[Finding]:
    """Check one hook. Only built-in ones are called: they read nothing but their settings."""
    if hook.name == "policy":
        # A refusal is fine: the policy could read its rules.
        with suppress(PolicyError):
            registry.check_outgoing([hook], OutgoingAction("share", complete=False))
    file = hook.table.get("file")
    if hook.name == "audit" and (not isinstance(file, str) or not Path(file).is_absolute()):
        error = SettingError(
            "its file is not an absolute path", remedy='set file = "/..." in its table'
        )
        yield report_failure(check, error)
        return
    if hook.name == "audit" and not Path(str(file)).parent.is_dir():
        detail = f"its file {file} cannot be written: the directory does not exist"
        yield report_failure(
            check,
            SettingError(detail, remedy="create the directory, or name another file in [audit]"),
        )
        return
    shown = describe_audit(hook.table) if hook.name == "audit" else file
    yield report_ok(check, f"active{f' ({shown})' if isinstance(shown, str) else ''}")


def _group_by_backend(plugins: list[InstalledPlugin]) -> dict[str, list[InstalledPlugin]]:
    by_backend: dict[str, list[InstalledPlugin]] = {}
    for each in plugins:
        by_backend.setdefault(each.info.backend or each.info.name, []).append(each)
    return by_backend


def _is_set(environ: Mapping[str, str], backend: str) -> bool:
    prefix = name_variable(backend, "", named=False)
    return any(name.startswith(prefix) and value for name, value in environ.items())


def _check_settings(
    registry: Registry, check: str, by_name: Mapping[str, list[InstalledPlugin]], *, named: bool
) -> Iterator[Finding]:
    """Report the first error of any kind, or that the settings are valid."""
    kinds = [(each.kind, name) for name, matching in by_name.items() for each in matching]
    is_filled: list[Any] = []
    for kind, name in kinds:
        try:
            is_filled.append(registry.settings(kind, name))
        except SettingError as error:
            is_missing = not named and "lacks the setting" in error.message
            yield (
                report_warning(check, error.message, error.remedy)
                if is_missing
                else report_failure(check, error)
            )
            return
        except SealpipeError as error:  # a missing package: this machine may not need it
            yield report_warning(check, error.message, error.remedy)
            return
    if any(each is not None for each in is_filled):
        yield report_ok(check, "its settings are valid")
