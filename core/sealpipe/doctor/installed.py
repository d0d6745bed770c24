"""Plugins: which there are, what each needs and has not, and what it finds out about itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from sealpipe.doctor.finding import Finding, doubtful, failed, fine
from sealpipe.errors import PluginError, ReferenceSyntaxError
from sealpipe.registry.guard import pip_install
from sealpipe.registry.stores import strays

if TYPE_CHECKING:
    from sealpipe.registry import Registry
    from sealpipe.registry.catalog import Listed

_SHOWN = 40  # a longer name is none, and may be a secret that somebody typed


def missing(needs: Sequence[str]) -> list[str]:
    """Those of some requirements whose distribution is not installed, whatever its version."""
    from importlib.metadata import PackageNotFoundError, version

    found = []
    for need in needs:
        try:
            version(re.split(r"[^A-Za-z0-9._-]", need.strip(), maxsplit=1)[0])
        except (PackageNotFoundError, ValueError):
            found.append(need)
    return found


def findings(registry: Registry) -> Iterator[Finding]:
    """How many there are, and every problem. None is made or asked."""
    listed = registry.listing()
    others = sorted({each.origin for each in listed if each.origin})
    for kind in dict.fromkeys(each.kind for each in listed):
        names = [each.info.name for each in listed if each.kind == kind]
        yield fine("plugins", f"{len(names)} of kind {kind}: {', '.join(names)}")
    if others:
        yield fine("plugins", f"from {', '.join(others)}")
    for plugin, problem in registry.problems.items():
        yield doubtful(f"plugin {plugin}", problem, "install it anew with all that it needs, or ask its author")
    for variable, near in strays(registry.environ, {each.info.backend or each.info.name for each in listed}):
        remedy = f"did you mean {near}?" if near else "unset it"
        yield doubtful(f"variable {variable}", "no plugin has that name", remedy)


def check(registry: Registry, name: str) -> Iterator[Finding]:
    """All that has this name (a plugin's or a store's): what it is, needs, and finds out without reading a secret."""
    store = registry.stores.get(name)
    plugin = name if store is None else store.plugin
    listed = [each for each in registry.listing() if each.info.name == plugin]
    if not listed:
        raise _nothing(registry, name, plugin)
    for each in listed:
        yield from _check(registry, each, name)


def _nothing(registry: Registry, name: str, plugin: str) -> ReferenceSyntaxError:
    known = sorted({each.info.name for each in registry.listing()} | registry.stores.keys())
    near = get_close_matches(plugin, known, 3)
    remedy = f"did you mean {' or '.join(near)}?" if near else "see `sealpipe plugins` for what there is"
    if name != plugin:
        return ReferenceSyntaxError(
            f"the store {name[:_SHOWN]} has the plugin {plugin[:_SHOWN]}, which does not exist", remedy=remedy
        )
    shown = f"named {name}" if len(name) <= _SHOWN else "of that name"
    return ReferenceSyntaxError(f"there is no store, source, sink or channel {shown}", remedy=remedy)


def _check(registry: Registry, each: Listed, name: str) -> Iterator[Finding]:
    what = f"{each.kind} {name}"
    yield fine(what, f"{each.info.summary} ({each.origin or 'built in'})")
    for need in missing(each.info.needs):
        yield doubtful(what, f"{need} is not installed", pip_install(each.info))
    try:
        health = registry.check(each.kind, name)
    except PluginError as error:
        yield failed(what, error)
        return
    if health.ok:
        yield fine(what, health.detail or "ready")
    else:
        yield failed(what, PluginError(health.detail or "it cannot be used now", locator=f"{name}:"))
