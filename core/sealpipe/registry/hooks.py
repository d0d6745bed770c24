"""The hooks that plugins implement; where third parties declare theirs; calls of commands, policies and observers."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from sealpipe.errors import PayloadTooLargeError, PluginError, PolicyError
from sealpipe.plugin import ChannelInfo, CIInfo, OutgoingAction, SinkInfo, SourceInfo, VetoError
from sealpipe.registry.calls import call_plugin
from sealpipe.registry.stores import AUDIT_MODULE, BUILT_IN_HOOKS, PolicyHook
from sealpipe.values import redact_address

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    import pluggy

    from sealpipe.registry.catalog import Catalog


HOOK = "sealpipe_commands"
GROUP: Final = "sealpipe"
_HEADING: Final = b"[sealpipe]"
_ENDINGS: Final = (".dist-info", ".egg-info")


def sealpipe_sources(register: Callable[[SourceInfo], None]) -> None:
    """Call `register` once for each source, with its descriptor. Returns nothing.

    It is called for every listing and completion: import no SDK, read no setting and call no backend here. Whatever it
    raises, and a descriptor of another type, is a problem of this plugin alone, which `sealpipe plugins` reports.
    """


def sealpipe_sinks(register: Callable[[SinkInfo], None]) -> None:
    """Call `register` once for each sink. Everything else is as for `sealpipe_sources`."""


def sealpipe_channels(register: Callable[[ChannelInfo], None]) -> None:
    """Call `register` once for each channel. Everything else is as for `sealpipe_sources`."""


def sealpipe_ci(register: Callable[[CIInfo], None]) -> None:
    """Call `register` once for each CI system. Everything else is as for `sealpipe_sources`."""


def sealpipe_commands(group: Any) -> None:
    """Add commands to `group`, a click group. Returns nothing.

    It is called for a command that sealpipe does not have, and by `sealpipe plugins`. A command with a name that is
    taken is left out. Of the errors of a command, click's and those of `sealpipe.errors` are shown; of any other only
    the type.
    """


def sealpipe_check_outgoing(plan: OutgoingAction, config: Mapping[str, Any], enforced: bool) -> None:  # noqa: FBT001 - as pluggy has it
    """Raise `VetoError` if a policy does not allow this. Returns nothing.

    It is called before anything is sent, stored or ended, if the config has a table `[oversight.NAME]` with the name
    of the plugin's entry point: `config` is that table, and `enforced` says whether it is the machine's. A hook need
    not take every argument. With any other error nothing is sent either: exit code 14.
    """


def sealpipe_event(event: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    """Take note of what has happened: an observer. Returns nothing.

    `event` has no values and no fragments; `config` is as for `sealpipe_check_outgoing`. An error of one observer is
    raised after all were notified, as exit code 14: what has happened stays.
    """


_HOOKS: Final = (
    sealpipe_sources,
    sealpipe_sinks,
    sealpipe_channels,
    sealpipe_ci,
    sealpipe_commands,
    sealpipe_check_outgoing,
    sealpipe_event,
)


def make_manager() -> pluggy.PluginManager:
    """Make a plugin manager with these hooks and no plugin."""
    import pluggy  # this check itself does not need it

    mark = pluggy.HookspecMarker(GROUP)
    for hook in _HOOKS:
        mark(hook)
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(sys.modules[__name__])
    return manager


def are_declared() -> bool:
    """Return whether a third party's plugin may be installed, at a fiftieth of the cost of `importlib.metadata`.

    If this cannot decide, it returns True.
    """
    # Python's own finder searches sys.path; another finder may find distributions elsewhere.
    own_finders = (each for each in sys.meta_path if "_frozen_importlib" not in str(getattr(each, "__module__", "")))
    if any(hasattr(finder, "find_distributions") for finder in own_finders):
        return True
    return any(_HEADING in text for text in _declarations())


def find_entry_points() -> list[EntryPoint]:
    """Return every entry point of the group, by name and value."""
    from importlib.metadata import entry_points  # expensive: only if needed

    return sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))


def read_origin(point: EntryPoint) -> tuple[str, str]:
    """Return the name and the version of an entry point's distribution; the version is empty if it has none."""
    if point.dist is None:
        return point.module, ""
    try:
        return point.dist.name, point.dist.version or ""
    except KeyError:  # Python 3.15: its metadata has no version
        return point.dist.name, ""


def _declarations() -> Iterator[bytes]:
    for folder in dict.fromkeys(sys.path):
        try:
            names = os.listdir(folder or ".")  # noqa: PTH208 - as text: there may be hundreds
        except NotADirectoryError:
            yield _HEADING  # an archive, such as a zip file
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
    """A click group for a plugin's commands; only the commands are used."""

    @property
    def commands(self) -> Mapping[str, Any]:
        """The commands by name."""
        ...


G = TypeVar("G", bound=Group)


class PluginCommand(NamedTuple):
    """A command of a plugin (the name of its entry point), and the distribution that contains it."""

    command: Any
    plugin: str
    origin: str
    version: str


def collect_commands(
    catalog: Catalog, group: Callable[[], G], is_taken: Callable[[str], bool]
) -> dict[str, PluginCommand]:
    """Return every command of every third-party plugin, by name. `is_taken` tells which names are built in.

    `group` makes an empty group for each plugin, so that one plugin's failure does not affect others. Problems are
    added to the catalog.
    """
    commands: dict[str, PluginCommand] = {}
    for plugin, (origin, version) in catalog.list_third_parties().items():
        plugin_group = group()
        module = catalog.get_module(plugin)
        try:
            call_plugin(plugin, partial(catalog.isolate_hook(module, HOOK), group=plugin_group), _make_commands_error)
        except (PluginError, PayloadTooLargeError) as error:
            catalog.problems[plugin] = error.message
            continue
        for name, command in plugin_group.commands.items():
            if is_taken(name) or name in commands:
                catalog.problems[plugin] = f"has a command named {name}, which already exists"
            else:
                commands[name] = PluginCommand(command, plugin, origin, version)
    return commands


def _make_commands_error(kind: str) -> PluginError:
    return PluginError(f"could not add its commands ({kind})")


def ask_policies(catalog: Catalog, hooks: Sequence[PolicyHook], plan: OutgoingAction) -> None:
    """Ask every policy. Raises PolicyError, or PluginError if one fails: then nothing may leave either."""
    for hook in hooks:
        try:
            _call(catalog, hook, "sealpipe_check_outgoing", plan=plan, enforced=hook.enforced)
        except _WrappedVetoError as refused:
            named_policy = "the policy" if hook.name == "policy" else f"the policy {hook.name}"
            subject = "this machine's policy" if hook.enforced else named_policy
            reason = str(refused)
            for target in (text for each in plan.recipients for text in (each, each.partition(":")[2])):
                if (shown := redact_address(target)) != target:
                    reason = reason.replace(target, shown)
            raise PolicyError(f"{subject} does not allow this: {reason}") from None


def notify_observers(catalog: Catalog, hooks: Sequence[PolicyHook], event: Mapping[str, Any]) -> None:
    """Notify every observer. Raises the first PluginError after all were notified."""
    failed: PluginError | None = None
    for hook in hooks:
        try:
            _call(catalog, hook, "sealpipe_event", event=event)
        except PluginError as error:
            failed = failed or error
    if failed is not None:
        raise failed


class _WrappedVetoError(PluginError):
    """A VetoError on its way through `call_plugin`, which lets only errors of the contract pass."""


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
    """Return the head of every audit log that this process has written; none if it has not loaded the audit."""
    module = sys.modules.get(AUDIT_MODULE)
    heads: Mapping[Path, str] = {} if module is None else module.heads
    return heads


def find_audit_key(file: Path, *configs: Mapping[str, Any]) -> Any:
    """Return the reference to the audit log's key, from the first config that names the file; None if there is none."""
    for config in configs:
        table = config.get("audit")
        if isinstance(table, Mapping) and isinstance(table.get("file"), str) and Path(table["file"]) == file:
            return table.get("key")
    return None


def verify_audit(file: Path, key: Any, head: str | None) -> Any:
    """Verify an audit log's chain, as a `sealpipe_plugins.audit.verify.Verification`.

    Raises OSError, NotConfiguredError.
    """
    key_bytes = None if key is None else call_plugin("audit", lambda: import_module(AUDIT_MODULE).read_key(key))
    return import_module("sealpipe_plugins.audit.verify").verify(file, key_bytes, head)
