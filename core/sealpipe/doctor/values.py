"""Every value that was set for a command, in the environment and in the config file: whether it can be used."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from sealpipe.config_file import OWN_TABLES
from sealpipe.doctor.finding import Finding, failed, fine
from sealpipe.errors import SettingError
from sealpipe.setting_values import check_value
from sealpipe.settings import COMMANDS, GLOBAL, Setting


class _Given(NamedTuple):
    setting: Setting
    value: Any
    where: str


def findings(environ: Mapping[str, str], config: Mapping[str, Any], told: Collection[str]) -> Iterator[Finding]:
    """Each that is wrong, with its name and never its value; then how many are right.

    `told` are the places of values that the report has told already.
    """
    found = [each for each in _given(environ, config) if each.where not in told]
    right = []
    for each in found:
        try:
            check_value(each.setting, each.value, each.where)
            right.append(each.where)
        except SettingError as error:
            yield failed(each.where, error)
    if right:
        yield fine("other settings", f"{len(right)} can be used: {', '.join(right)}")


def _given(environ: Mapping[str, str], config: Mapping[str, Any]) -> Iterator[_Given]:
    for command, setting in _all():
        if value := environ.get(setting.variable(command)):
            yield _Given(setting, value, f"variable {setting.variable(command)}")
    for command, setting in _all():
        # `plugins` is a table of its own there, not the settings of the command of that name.
        table = config if not command else {} if command in OWN_TABLES else config.get(command, {})
        if setting.name in table:
            yield _Given(setting, table[setting.name], f"config file's {command}{'.' if command else ''}{setting.name}")


def _all() -> Iterable[tuple[str, Setting]]:
    """Command and setting; no command for the global ones. The secrets are the credential's check to tell."""
    yield from (("", setting) for setting in GLOBAL if not setting.secret)
    yield from ((command, setting) for command, settings in COMMANDS.items() for setting in settings)
