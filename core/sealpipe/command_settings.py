"""The tables of settings of all commands, and those of a config file that have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sealpipe.settings import FIRST, Setting


class _Tables(Mapping[str, tuple[Setting, ...]]):
    """The tables by command.

    Those that are not in `FIRST` are loaded when the first of them is asked for.
    """

    def __getitem__(self, command: str) -> tuple[Setting, ...]:
        return FIRST[command] if command in FIRST else self._load()[command]

    def __iter__(self) -> Iterator[str]:
        return iter((*FIRST, *self._load()))

    def __len__(self) -> int:
        return len(FIRST) + len(self._load())

    def _load(self) -> Mapping[str, tuple[Setting, ...]]:
        from sealpipe.settings_on_demand import ON_DEMAND  # a share does not need them

        return ON_DEMAND


COMMANDS: Mapping[str, tuple[Setting, ...]] = _Tables()

OWN_TABLES = ("stores", "plugins", "audit", "policy", "oversight", "allow_plugins", "checks")
"""Tables of a config file that are not those of commands.

Those who use them check them: plugins, policies, `collect --check`.
"""


def get_command_table(config: Mapping[str, Any], command: str) -> Mapping[str, Any]:
    """Return the settings of a command; empty if there are none.

    `plugins` has those of plugins, not of the command.
    """
    table: Mapping[str, Any] = {} if command in OWN_TABLES else config.get(command, {})
    return table
