"""The hooks that plugins implement."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from sealpipe.plugin import ChannelInfo, CIInfo, Context, OutgoingAction, SinkInfo, SourceInfo

if TYPE_CHECKING:
    import pluggy

GROUP: Final = "sealpipe"


def sealpipe_sources(register: Callable[[SourceInfo], None]) -> None:
    """Call `register` once for each source, with its descriptor. Returns nothing.

    It is called for every listing and completion: import no SDK, read no setting and call no
    backend here. Whatever it raises, and a descriptor of another type, is a problem of this plugin
    alone, which `sealpipe plugins` reports.
    """


def sealpipe_sinks(register: Callable[[SinkInfo], None]) -> None:
    """Call `register` once for each sink. Everything else is as for `sealpipe_sources`."""


def sealpipe_channels(register: Callable[[ChannelInfo], None]) -> None:
    """Call `register` once for each channel. Everything else is as for `sealpipe_sources`."""


def sealpipe_ci(register: Callable[[CIInfo], None]) -> None:
    """Call `register` once for each CI system. Everything else is as for `sealpipe_sources`."""


def sealpipe_commands(group: Any) -> None:
    """Add commands to `group`, a click group. Returns nothing.

    It is called for a command that sealpipe does not have, and by `sealpipe plugins`. A command
    with a name that is taken is left out. Of the errors of a command, click's and those of
    `sealpipe.errors` are shown; of any other only the type.
    """


def sealpipe_check_outgoing(
    plan: OutgoingAction,
    config: Mapping[str, Any],
    enforced: bool,  # noqa: FBT001 - as pluggy has it
) -> None:
    """Raise `VetoError` if a policy does not allow this. Returns nothing.

    It is called before anything is sent, stored or ended, if the config has a table
    `[oversight.NAME]` with the name of the plugin's entry point: `config` is that table, and
    `enforced` says whether it is the machine's. A hook need not take every argument. With any other
    error nothing is sent either: exit code 14.
    """


def sealpipe_event(event: Mapping[str, Any], config: Mapping[str, Any], context: Context) -> None:
    """Take note of what has happened: an observer. Returns nothing.

    `event` has no values and no fragments; `config` is as for `sealpipe_check_outgoing`, and
    `context` as for a channel: with the network. A hook need not take every argument. An error of
    one observer is raised after all were notified, as exit code 14: what has happened stays.
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
