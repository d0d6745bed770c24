"""Check plugins, named stores and policies: what is installed, what is missing, whether its settings are valid."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sealpipe.ci_systems import is_set
from sealpipe.doctor import Finding, failure, ok, run_check, warning
from sealpipe.errors import PluginError, PolicyError, ReferenceSyntaxError, SealpipeError, SettingError
from sealpipe.plugin import CIInfo, OutgoingAction
from sealpipe.registry.calls import install_command
from sealpipe.registry.stores import PLUGIN, unknown_plugin_variables

if TYPE_CHECKING:
    from sealpipe.registry import Registry
    from sealpipe.registry.catalog import InstalledPlugin
    from sealpipe.registry.stores import PolicyHook

_SHOWN = 40  # a longer name is none, and may be a secret that somebody typed


def missing_requirements(needs: Sequence[str]) -> list[str]:
    """Those of some requirements whose distribution is not installed, whatever its version."""
    from importlib.metadata import PackageNotFoundError, version

    found = []
    for need in needs:
        try:
            version(re.split(r"[^A-Za-z0-9._-]", need.strip(), maxsplit=1)[0])
        except (PackageNotFoundError, ValueError):
            found.append(need)
    return found


def check_plugins(registry: Registry) -> Iterator[Finding]:
    """How many there are, and every problem. None is made or asked."""
    listed = registry.listing()
    others = sorted({each.origin for each in listed if each.origin})
    for kind in dict.fromkeys(each.kind for each in listed):
        names = [each.info.name for each in listed if each.kind == kind]
        yield ok("plugins", f"{len(names)} of kind {kind}: {', '.join(names)}")
    if others:
        yield ok("plugins", f"from {', '.join(others)}")
    for plugin, problem in registry.problems.items():
        yield warning(f"plugin {plugin}", problem, "reinstall it with its dependencies, or ask its author")
    for variable, near in unknown_plugin_variables(
        registry.environ, {each.info.backend or each.info.name for each in listed}
    ):
        remedy = f"did you mean {near}?" if near else "unset it"
        yield warning(f"variable {variable}", "no plugin has this name", remedy)


def check_plugin(registry: Registry, name: str) -> Iterator[Finding]:
    """All that has this name (a plugin's or a store's): what it is, needs, and finds out without reading a secret."""
    store = registry.stores.get(name)
    plugin = name if store is None else store.plugin
    listed = [each for each in registry.listing() if each.info.name == plugin]
    if not listed:
        raise _nothing(registry, name, plugin)
    for each in listed:
        yield from _check_instance(registry, each, name)


def _nothing(registry: Registry, name: str, plugin: str) -> ReferenceSyntaxError:
    known = sorted({each.info.name for each in registry.listing()} | registry.stores.keys())
    near = get_close_matches(plugin, known, 3)
    remedy = f"did you mean {' or '.join(near)}?" if near else "run `sealpipe plugins` to list what is installed"
    if name != plugin:
        return ReferenceSyntaxError(
            f"the store {name[:_SHOWN]} has the plugin {plugin[:_SHOWN]}, which does not exist", remedy=remedy
        )
    shown = f"named {name}" if len(name) <= _SHOWN else "of that name"
    return ReferenceSyntaxError(f"there is no store, source, sink or channel {shown}", remedy=remedy)


def _check_instance(registry: Registry, each: InstalledPlugin, name: str) -> Iterator[Finding]:
    what = f"{each.kind} {name}"
    yield ok(what, f"{each.info.summary} ({each.origin or 'built in'})")
    for need in missing_requirements(each.info.needs):
        yield warning(what, f"{need} is not installed", install_command(each.info))
    if isinstance(each.info, CIInfo):  # it has nothing to reach and no login: only where it runs can be said
        runs = is_set(registry.environ, each.info.sign)
        yield ok(what, "this job runs on it" if runs else f"this is not one of its jobs: {each.info.sign} is not set")
        return
    try:
        health = registry.check(each.kind, name)
    except PluginError as error:
        yield failure(what, error)
        return
    if health.ok:
        yield ok(what, health.detail or "ready")
    else:
        yield failure(what, PluginError(health.detail or "it cannot be used now", locator=f"{name}:"))


def check_stores(registry: Registry) -> Iterator[Finding]:
    """Each named store, and each plugin for which something is set: its settings as a command would fill them."""
    listed = [each for each in registry.listing() if each.kind != "ci"]
    for name, store in registry.stores.items():
        of_it = [each for each in listed if each.info.name == store.plugin]
        if of_it:
            lacking = missing_requirements(of_it[0].info.needs)
            if lacking:
                what = f"{' and '.join(lacking)} is not installed"
                yield warning(f"store {name}", what, install_command(of_it[0].info))
            yield from _filled(registry, f"store {name}", {name: of_it}, named=True)
        else:
            near = get_close_matches(store.plugin, [each.info.name for each in listed], 1)
            remedy = f"did you mean {near[0]}?" if near else "run `sealpipe plugins` to list what is installed"
            error = SettingError(f"its plugin {store.plugin[:40]} does not exist", remedy=remedy)
            yield failure(f"store {name}", error)
    for backend, of_it in _by_backend(listed).items():
        if backend in registry.config.get("plugins", {}) or _is_set(registry.environ, backend):
            by_name = {each.info.name: [each] for each in of_it}
            yield from _filled(registry, f"plugin {backend}", by_name, named=False)


def check_policies(registry: Registry, load: Callable[[], tuple[PolicyHook, ...]]) -> Iterator[Finding]:
    """Policies and observers: every command of ours asks them first, so one that is wrong stops all."""
    found = load()
    for each in found:
        check = f"{each.name} (this machine's)" if each.enforced else each.name
        yield from run_check(check, partial(_check_policy, registry, each, check))


def _check_policy(registry: Registry, each: PolicyHook, check: str) -> Iterator[Finding]:
    """Whether it can be asked. Only the built-in policy is: it looks at its rules, and at nothing else."""
    if each.name == "policy":
        # Its refusal is no trouble: it has read its rules.
        with suppress(PolicyError):
            registry.check_outgoing([each], OutgoingAction("share", complete=False))
    file = each.table.get("file")
    if each.name == "audit" and (not isinstance(file, str) or not Path(file).is_absolute()):
        error = SettingError("its file is not an absolute path", remedy='set file = "/..." in its table')
        yield failure(check, error)
        return
    if each.name == "audit" and not Path(str(file)).parent.is_dir():
        what = f"its file {file} cannot be written: the directory does not exist"
        yield failure(check, SettingError(what, remedy="create the directory, or name another file in [audit]"))
        return
    yield ok(check, f"active{f' ({file})' if isinstance(file, str) else ''}")


def _by_backend(listed: list[InstalledPlugin]) -> dict[str, list[InstalledPlugin]]:
    found: dict[str, list[InstalledPlugin]] = {}
    for each in listed:
        found.setdefault(each.info.backend or each.info.name, []).append(each)
    return found


def _is_set(environ: Mapping[str, str], backend: str) -> bool:
    prefix = f"{PLUGIN}{backend.upper().replace('-', '_')}__"
    return any(name.startswith(prefix) and value for name, value in environ.items())


def _filled(
    registry: Registry, check: str, by_name: Mapping[str, list[InstalledPlugin]], *, named: bool
) -> Iterator[Finding]:
    """One finding: the first error of any kind, or that all is well."""
    kinds = [(each.kind, name) for name, of_it in by_name.items() for each in of_it]
    made: list[Any] = []
    for kind, name in kinds:
        try:
            made.append(registry.settings(kind, name))
        except SettingError as error:
            lacks = not named and "lacks its setting" in error.message
            yield warning(check, error.message, error.remedy) if lacks else failure(check, error)
            return
        except SealpipeError as error:  # a package that is not there: this machine may not need it
            yield warning(check, error.message, error.remedy)
            return
    if any(each is not None for each in made):
        yield ok(check, "its settings are valid")
