"""What calls plugins through hooks (`registry.hook_specs`): the commands that they add, policies and observers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from sealpipe.errors import PayloadTooLargeError, PluginError, PolicyError
from sealpipe.plugin import OutgoingAction, VetoError
from sealpipe.reference.text import redact_address
from sealpipe.registry.calls import call_plugin
from sealpipe.registry.stores import AUDIT_MODULE, BUILT_IN_HOOKS, PolicyHook

if TYPE_CHECKING:
    from sealpipe.registry.catalog import Catalog

HOOK = "sealpipe_commands"


class Group(Protocol):
    """What a plugin is handed: a click group, of which only the commands are taken."""

    @property
    def commands(self) -> Mapping[str, Any]:
        """By name."""
        ...


G = TypeVar("G", bound=Group)


class PluginCommand(NamedTuple):
    """A command of a plugin (the name of its entry point), and the distribution that this came with."""

    command: Any
    plugin: str
    origin: str
    version: str


def collect_commands(
    catalog: Catalog, group: Callable[[], G], is_taken: Callable[[str], bool]
) -> dict[str, PluginCommand]:
    """Every command of every third-party plugin, by name. `is_taken` tells the names that are ours.

    `group` makes an empty group for each: what breaks in one takes nothing from another. Problems are the catalog's.
    """
    commands: dict[str, PluginCommand] = {}
    for plugin, (origin, version) in catalog.list_third_parties().items():
        own = group()
        module = catalog.get_module(plugin)
        try:
            call_plugin(plugin, partial(catalog.isolate_hook(module, HOOK), group=own), _make_commands_error)
        except (PluginError, PayloadTooLargeError) as error:
            catalog.problems[plugin] = error.message
            continue
        for name, command in own.commands.items():
            if is_taken(name) or name in commands:
                catalog.problems[plugin] = f"has a command named {name}, which already exists"
            else:
                commands[name] = PluginCommand(command, plugin, origin, version)
    return commands


def _make_commands_error(kind: str) -> PluginError:
    return PluginError(f"could not add its commands ({kind})")


def ask_policies(catalog: Catalog, hooks: Sequence[PolicyHook], plan: OutgoingAction) -> None:
    """Ask every policy. Raises PolicyError, or PluginError where one cannot say: then nothing may leave either."""
    for hook in hooks:
        try:
            _call(catalog, hook, "sealpipe_check_outgoing", plan=plan, enforced=hook.enforced)
        except _WrappedVetoError as refused:
            named_policy = "the policy" if hook.name == "policy" else f"the policy {hook.name}"
            subject = "this machine's policy" if hook.enforced else named_policy
            reason = str(refused)
            for recipient in plan.recipients:
                reason = reason.replace(recipient, redact_address(recipient))
            raise PolicyError(f"{subject} does not allow this: {reason}") from None


def notify_observers(catalog: Catalog, hooks: Sequence[PolicyHook], event: Mapping[str, Any]) -> None:
    """Tell every observer. Raises the first PluginError, once all were told."""
    failed: PluginError | None = None
    for hook in hooks:
        try:
            _call(catalog, hook, "sealpipe_event", event=event)
        except PluginError as error:
            failed = failed or error
    if failed is not None:
        raise failed


class _WrappedVetoError(PluginError):
    """A VetoError on its way through the guard, which lets only errors of the contract pass."""


def _call(catalog: Catalog, hook: PolicyHook, function: str, **values: Any) -> None:
    built_in = BUILT_IN_HOOKS.get(hook.name)
    module = import_module(built_in) if built_in else catalog.get_module(hook.name)
    implementation = getattr(module, function, None)
    if implementation is None:
        return
    call_plugin(hook.name, partial(_ask_hook, catalog.isolate_hook(module, function), {**values, "config": hook.table}))


def _ask_hook(call: Any, values: Mapping[str, Any]) -> None:
    try:
        call(**values)
    except VetoError as refusal:
        raise _WrappedVetoError(str(refusal)) from None


def get_audit_heads() -> Mapping[Path, str]:
    """The head of every audit log that this process has written to; none where it has loaded no audit."""
    module = sys.modules.get(AUDIT_MODULE)
    heads: Mapping[Path, str] = {} if module is None else module.heads
    return heads


def find_audit_key(file: Path, *configs: Mapping[str, Any]) -> Any:
    """The key's reference of the audit log that a config names, the first that does; None for none."""
    for config in configs:
        table = config.get("audit")
        if isinstance(table, Mapping) and isinstance(table.get("file"), str) and Path(table["file"]) == file:
            return table.get("key")
    return None


def verify_audit(file: Path, key: Any, head: str | None) -> Any:
    """What an audit log's chain is like (`sealpipe_plugins.audit.verify.Verification`). Raises OSError,
    NotConfiguredError."""
    key_bytes = None if key is None else call_plugin("audit", lambda: import_module(AUDIT_MODULE).read_key(key))
    return import_module("sealpipe_plugins.audit.verify").verify(file, key_bytes, head)
