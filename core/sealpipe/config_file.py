"""Read config files, and report every error in them by name and place, never by value."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from datetime import date, time
from pathlib import Path
from typing import Any, Final, NamedTuple

from sealpipe import parsing
from sealpipe.command_settings import COMMANDS, OWN_TABLES
from sealpipe.errors import PolicyError, SettingError, UsageError, find_similar, quote_input
from sealpipe.settings import GLOBAL, Setting

_MAX_SHOWN = 50
_POSITION = re.compile(r"\(at line (\d+), column (\d+)\)$")
_SCALARS = (str, int, float, date, time)  # bool is an int, datetime a date


def parse_toml(path: Path, what: str) -> dict[str, Any]:
    """Parse a TOML file. SettingError gives the place of a syntax error, without its text.

    Raises OSError.
    """
    config = load_toml(path.read_bytes())
    if isinstance(config, TomlFlaw):
        raise SettingError(
            f"{what} {path} is not valid TOML at {config.location}",
            remedy="write each setting as `name = value`",
        )
    return config


class TomlFlaw(NamedTuple):
    """A syntax error.

    Where it is, in words and as line and column (0: unknown), and whether it repeats a name.
    """

    location: str
    line: int = 0
    column: int = 0
    repeats: bool = False


def load_toml(content: bytes) -> dict[str, Any] | TomlFlaw:
    """Parse TOML; a flaw has the place of a syntax error, and none of the text.

    The text can hold a secret.
    """
    try:
        return tomllib.loads(content.decode("utf-8"))
    except tomllib.TOMLDecodeError as error:
        position = _POSITION.search(str(error))
        repeats = str(error).startswith(_REPEATING)
        if position is None:
            return TomlFlaw("the end of the file: something is not closed")
        line, column = int(position[1]), int(position[2])
        return TomlFlaw(f"line {line}, column {column}", line, column, repeats)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return TomlFlaw(f"line {line}: not UTF-8", line)
    except RecursionError:
        return TomlFlaw("a place that is nested too deeply")


_REPEATING: Final = ("Cannot ", "Duplicate ")
"""How messages of tomllib about a name that is set twice begin."""


class Flaw(NamedTuple):
    """A wrong name or value: its path from the top, and the error."""

    names: tuple[str, ...]
    error: SettingError


def find_flaws(path: Path, config: Mapping[str, Any]) -> Iterator[Flaw]:
    """Find every unknown setting, and every value of a wrong type."""
    known = {setting.name: setting for setting in GLOBAL if not setting.secret}
    for name, value in config.items():
        if name in OWN_TABLES:  # `plugins` has the settings of plugins, not those of the command
            continue
        if name in ("api_key", "api_key_previous"):
            yield Flaw((name,), _make_credential_error(path))
        elif name in known:
            yield from _check_kind(path, (name,), known[name], value)
        elif name not in COMMANDS:
            yield Flaw((name,), _make_unknown_error(path, name, _suggest_top_level(name, known)))
        elif not isinstance(value, dict):
            yield Flaw(
                (name,),
                _make_kind_error(
                    path, name, "a table", f"write [{name}], followed by its settings"
                ),
            )
        else:
            yield from _command_flaws(path, name, value)


def remove_flaws(config: Mapping[str, Any], flaws: list[Flaw]) -> dict[str, Any]:
    """Return the table without its flaws."""
    flaw_paths = {each.names for each in flaws}
    return {
        name: {key: item for key, item in value.items() if (name, key) not in flaw_paths}
        if isinstance(value, dict)
        else value
        for name, value in config.items()
        if (name,) not in flaw_paths
    }


def _command_flaws(path: Path, command: str, table: Mapping[str, Any]) -> Iterator[Flaw]:
    inner = {setting.name: setting for setting in COMMANDS[command]}
    for name, value in table.items():
        if name in inner:
            yield from _check_kind(path, (command, name), inner[name], value)
        else:
            yield Flaw(
                (command, name),
                _make_unknown_error(path, f"{command}.{name}", _suggest_in_table(name, inner)),
            )


def _check_kind(
    path: Path, names: tuple[str, ...], setting: Setting, value: object
) -> Iterator[Flaw]:
    if setting.multiple:
        is_valid = isinstance(value, list) and all(isinstance(each, str) for each in value)
        expected, remedy = "a list of strings", f'write {setting.name} = ["..."]'
    else:
        is_valid, expected, remedy = (
            isinstance(value, _SCALARS),
            "a single value",
            f'write {setting.name} = "..."',
        )
    if not is_valid:
        yield Flaw(names, _make_kind_error(path, ".".join(names), expected, remedy))


def _make_credential_error(path: Path) -> SettingError:
    return SettingError(
        f"the config file {path} contains a credential",
        remedy=(
            "store the credential in a separate file (mode 0600), and set api_key_file to its path"
        ),
    )


def _make_kind_error(path: Path, name: str, expected: str, remedy: str) -> SettingError:
    return SettingError(
        f"the config file {path} sets {name!r}, which is not {expected}", remedy=remedy
    )


def _make_unknown_error(path: Path, name: str, remedy: str) -> SettingError:
    # No setting has a longer name; it may be a misplaced secret.
    shown = repr(name) if len(name) <= _MAX_SHOWN else f"a name of {len(name)} characters"
    return SettingError(
        f"the config file {path} sets {shown}, which is not a setting", remedy=remedy
    )


def _suggest_top_level(name: str, known: Mapping[str, Setting]) -> str:
    """Suggest a name of the same level, else a command's setting that is outside its table."""
    if matches := find_similar(name, [*known, *COMMANDS, *OWN_TABLES]):
        return f"did you mean {matches[0]}?"
    commands_by_setting = {
        setting.name: command
        for command, settings in reversed(list(COMMANDS.items()))
        for setting in settings
    }
    if matches := find_similar(name, commands_by_setting):
        return f"did you mean {matches[0]}, below [{commands_by_setting[matches[0]]}]?"
    return "remove it; docs/reference/settings.md lists all settings"


def _suggest_in_table(name: str, settings: Mapping[str, Setting]) -> str:
    if any(setting.name == name for setting in GLOBAL):
        return f"move {name} above the first table: it applies to all commands"
    if matches := find_similar(name, settings):
        return f"did you mean {matches[0]}?"
    return (
        f"the command has {', '.join(sorted(settings))}"
        if settings
        else "the command has no settings"
    )


_TRUST: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables that name certificates to trust instead of the system's."""

SYSTEM_TRUST: Final = "system"
"""Value of ca_file that means: only the system's certificates."""


def _path(text: str) -> str:
    if text == SYSTEM_TRUST:
        return text
    if not Path(text).is_absolute():
        raise SettingError("the path is not absolute")
    return os.path.normpath(text)


_FIXED: Final[Mapping[str, Callable[[str], str]]] = {
    "base_url": parsing.parse_base_url,
    "link_base_url": parsing.parse_link_base_url,
    "ca_file": _path,
}


def enforce_service(
    machine: Mapping[str, Any], requested: Mapping[str, str | None], environ: Mapping[str, str]
) -> dict[str, str | None]:
    """Return base URL, link base URL and CA file.

    As `requested`, overridden by the machine's config.

    Raises PolicyError if a requested value differs from an enforced one, SettingError if the table
    is invalid.
    """
    enforced = {**requested}
    for name, fixed in _read_table(machine).items():
        value = requested.get(name)
        if value and _normalize(name, value) != fixed:
            raise PolicyError(
                f"this machine fixes {name} to {fixed}, but a different value is set",
                remedy=(
                    f"unset SEALPIPE_{name.upper()}, and remove {name} from the config file "
                    "and the call"
                ),
            )
        enforced[name] = None if name == "ca_file" and fixed == SYSTEM_TRUST else fixed
    if "ca_file" in _read_table(machine):
        for variable in _TRUST:
            if environ.get(variable) and environ[variable] != enforced["ca_file"]:
                raise PolicyError(
                    f"this machine fixes ca_file, but {variable} names other certificates",
                    remedy=f"unset {variable}",
                )
    return enforced


def _normalize(name: str, value: str) -> str:
    """Normalize a value for comparison.

    An invalid one is returned unchanged: its reader reports it later.
    """
    try:
        # Links stay.
        return os.path.abspath(value) if name == "ca_file" else _FIXED[name](value)  # noqa: PTH100
    except UsageError:
        return value


def _read_table(machine: Mapping[str, Any]) -> dict[str, str]:
    enforce = machine.get("enforce", {})
    table = enforce.get("service", {}) if isinstance(enforce, Mapping) else {}
    if not isinstance(table, Mapping):
        raise SettingError(
            "the machine's enforce.service is not a table", remedy="write [enforce.service]"
        )
    found = {}
    for name, value in table.items():
        if name not in _FIXED:
            known = ", ".join(_FIXED)
            raise SettingError(
                f"the machine's enforce.service sets {quote_input(name)}, which is not a setting",
                remedy=f"choose from {known}",
            )
        problem = "the value is not a string"
        if isinstance(value, str):
            try:
                found[name] = _FIXED[name](value)
                continue
            except UsageError as error:
                problem = error.message
        raise SettingError(
            f"the machine's enforce.service.{name}: {problem}",
            remedy="ask this machine's administrator to correct it",
        )
    return found


FLAG_VALUES: Final = frozenset(
    {"1", "true", "t", "yes", "y", "on", "0", "false", "f", "no", "n", "off"}
)
"""Values that the environment and the config file may give to an option that takes no value."""


def check_value(setting: Setting, value: object, where: str) -> None:
    """Check a value as its command would.

    SettingError names `where` it was set; an empty text counts as unset.
    """
    for text in _split_texts(setting, value):
        try:
            _check_one(setting, text)
        except UsageError as error:
            message, remedy = (
                _strip_quotes(text, error.message),
                error.remedy or f"correct {where}, or unset it",
            )
        else:
            continue
        raise SettingError(f"{where}: {message}", remedy=remedy)


def _strip_quotes(text: str, message: str) -> str:
    """Remove the value from a message.

    Others read reports, and the value may be a misplaced secret.
    """
    for form in (quote_input(text), text):
        if message.startswith(form):
            message = f"the value{message.removeprefix(form)}"
    quoted = text[:20]
    return "the value is not valid" if len(quoted) > 3 and quoted in message else message


def _split_texts(setting: Setting, value: object) -> list[str]:
    """Return the value's texts.

    One, or for a repeatable setting one for each line or list element.
    """
    values = value if isinstance(value, list) else [value]
    texts = [each.isoformat() if isinstance(each, date | time) else str(each) for each in values]
    if setting.multiple and not isinstance(value, list):
        texts = [line for text in texts for line in text.split("\n") if line.strip()]
    return [text for text in texts if text]


def _check_one(setting: Setting, text: str) -> None:
    # Do not quote the value: it may be a misplaced secret.
    if setting.flag and text.strip().lower() not in FLAG_VALUES:
        raise UsageError("the value is not a boolean", remedy="write true or false")
    if setting.choices and text not in setting.choices:
        raise UsageError(
            "the value is not one of the choices",
            remedy=f"choose from {', '.join(setting.choices)}",
        )
    if not setting.flag and not setting.choices:
        setting.parse(text)
