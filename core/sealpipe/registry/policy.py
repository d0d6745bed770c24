"""Policies and observers: asked before anything leaves, told what happened (DESIGN section 5).

Which there are, the user's config file says (`[audit]`, `[policy]`, `[oversight.NAME]` for a third party's) and
the machine's, whose `[enforce]` nobody overrides. Without any, nothing here is ever called.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sealpipe.errors import NotConfiguredError, PluginError, PolicyError
from sealpipe.plugin import Outgoing, VetoError
from sealpipe.registry.calls import guarded
from sealpipe.registry.stores import read_tables

if TYPE_CHECKING:
    from sealpipe.registry.catalog import Catalog

AUDIT: Final = "sealpipe_plugins.audit.observer"
SERVICE: Final = "service"
"""The table of `[enforce]` that fixes addresses: it oversees nothing."""

BUILT_IN: Final[Mapping[str, str]] = {"audit": AUDIT, "policy": "sealpipe_plugins.policy"}


class Overseer(NamedTuple):
    """A policy or observer, and its table of the config. `enforced`: the machine's, not the user's."""

    name: str
    table: Mapping[str, Any]
    enforced: bool = False


def check(catalog: Catalog, overseers: Sequence[Overseer], plan: Outgoing) -> None:
    """Ask every policy. Raises PolicyError, or PluginError where one cannot say: then nothing may leave either."""
    for overseer in overseers:
        try:
            _call(catalog, overseer, "sealpipe_check_outgoing", plan=plan, enforced=overseer.enforced)
        except _GuardedVetoError as refused:
            own = "the policy" if overseer.name == "policy" else f"the policy {overseer.name}"
            whose = "this machine's policy" if overseer.enforced else own
            raise PolicyError(f"{whose} does not allow this: {refused}") from None


def tell(catalog: Catalog, overseers: Sequence[Overseer], event: Mapping[str, Any]) -> None:
    """Tell every observer. Raises the first PluginError, once all were told."""
    failed: PluginError | None = None
    for overseer in overseers:
        try:
            _call(catalog, overseer, "sealpipe_event", event=event)
        except PluginError as error:
            failed = failed or error
    if failed is not None:
        raise failed


class _GuardedVetoError(PluginError):
    """A VetoError on its way through the guard, which lets only errors of the contract pass."""


def _call(catalog: Catalog, overseer: Overseer, hook: str, **values: Any) -> None:
    place = BUILT_IN.get(overseer.name)
    module = import_module(place) if place else catalog.module(overseer.name)
    implementation = getattr(module, hook, None)
    if implementation is None:
        return
    guarded(overseer.name, partial(_ask, catalog.only(module, hook), {**values, "config": overseer.table}))


def _ask(call: Any, values: Mapping[str, Any]) -> None:
    try:
        call(**values)
    except VetoError as refusal:
        raise _GuardedVetoError(str(refusal)) from None


def overseers(user: Mapping[str, Any], machine: Mapping[str, Any]) -> tuple[Overseer, ...]:
    """Who oversees, by the two config files, the machine's first. SettingError, NotConfiguredError for what is no
    table."""
    enforced = read_tables(machine, "enforce")
    found = [Overseer(name, table, enforced=True) for name, table in enforced.items() if name != SERVICE]
    found += [Overseer(name, user[name]) for name in BUILT_IN if name in user]
    found += [Overseer(name, table) for name, table in read_tables(user, "oversight").items()]
    for overseer in found:
        if not isinstance(overseer.table, Mapping):
            raise NotConfiguredError(f"the config's {overseer.name} is no table", remedy=f"write [{overseer.name}]")
    return tuple(found)


def audit_heads() -> Mapping[Path, str]:
    """The head of every audit log that this process has written to; none where it has loaded no audit."""
    module = sys.modules.get(AUDIT)
    found: Mapping[Path, str] = {} if module is None else module.heads
    return found


def audit_key(file: Path, *configs: Mapping[str, Any]) -> Any:
    """The key's reference of the audit log that a config names, the first that does; None for none."""
    for config in configs:
        table = config.get("audit")
        if isinstance(table, Mapping) and isinstance(table.get("file"), str) and Path(table["file"]) == file:
            return table.get("key")
    return None


def audit_verified(file: Path, key: Any, head: str | None) -> Any:
    """What an audit log's chain is like (`sealpipe_plugins.audit.verify.Verified`). Raises OSError,
    NotConfiguredError."""
    opened = None if key is None else guarded("audit", lambda: import_module(AUDIT).key_of(key))
    return import_module("sealpipe_plugins.audit.verify").verify(file, opened, head)
