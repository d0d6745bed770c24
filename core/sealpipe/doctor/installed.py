"""Plugins: which there are, what each needs and has not, and what it finds out about itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sealpipe.doctor.finding import Finding, doubtful, failed, fine
from sealpipe.errors import PluginError
from sealpipe.registry import Registry


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
    others = sorted({origin for _, origin in listed if origin})
    names = ", ".join(info.name for info, _ in listed)
    yield fine("plugins", f"{len(listed)} sources: {names}" + (f"; from {', '.join(others)}" if others else ""))
    for plugin, problem in registry.problems.items():
        yield doubtful(f"plugin {plugin}", problem, "install it anew with all that it needs, or ask its author")


def check(registry: Registry, name: str) -> Iterator[Finding]:
    """One source: what it is, what it needs, and what it finds out without reading a secret."""
    info = registry.info(name)
    origin = {each.name: origin for each, origin in registry.listing()}[name]
    yield fine(f"source {name}", f"{info.summary} ({origin or 'built in'})")
    for need in missing(info.needs):
        yield doubtful(f"source {name}", f"{need} is not installed", f"pip install '{need}'")
    try:
        health = registry.check(name)
    except PluginError as error:
        yield failed(f"source {name}", error)
        return
    if health.ok:
        yield fine(f"source {name}", health.detail or "ready")
    else:
        yield failed(f"source {name}", PluginError(health.detail or "it cannot be used now", locator=f"{name}:"))
