"""What calls plugins through hooks (`registry.hook_specs`): the commands that they add, policies and observers."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from sealpipe.errors import PayloadTooLargeError, PluginError, PolicyError
from sealpipe.plugin import OutgoingAction, VetoError
from sealpipe.reference.text import redact_address
from sealpipe.registry.calls import call_plugin
from sealpipe.registry.stores import AUDIT_MODULE, BUILT_IN_HOOKS, PolicyHook

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from sealpipe.registry.catalog import Catalog

HOOK = "sealpipe_commands"
GROUP: Final = "sealpipe"
_HEADING: Final = b"[sealpipe]"
_ENDINGS: Final = (".dist-info", ".egg-info")


def are_declared() -> bool:
    """Whether any may be, at a fiftieth of what `importlib.metadata` costs: that is asked where this cannot tell."""
    # Python's own finder looks along sys.path; another one may find distributions elsewhere.
    own_finders = (each for each in sys.meta_path if "_frozen_importlib" not in str(getattr(each, "__module__", "")))
    if any(hasattr(finder, "find_distributions") for finder in own_finders):
        return True
    return any(_HEADING in text for text in _declarations())


def find_entry_points() -> list[EntryPoint]:
    """Every entry point of the group, by name and value."""
    from importlib.metadata import entry_points  # 160 million instructions: only where it is needed

    return sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))


def _declarations() -> Iterator[bytes]:
    for folder in dict.fromkeys(sys.path):
        try:
            names = os.listdir(folder or ".")  # noqa: PTH208 - as text: there may be hundreds
        except NotADirectoryError:
            yield _HEADING  # an archive
            continue
        except OSError:
            continue
        for name in names:
            if name.lower().endswith(_ENDINGS):
                try:
                    with open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:  # noqa: PTH118, PTH123
                        yield file.read()
                except OSError:
                    continue


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
