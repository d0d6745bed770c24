"""The configuration of a run.

The environment, both config files and the credential, each read once.

Options come on top: click (`cli`) and the pydantic-settings model (`settings_model.py`) both take
their defaults from `Config.user`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from sealpipe import permissions
from sealpipe.command_settings import COMMANDS, get_command_table
from sealpipe.errors import CredentialError, Note, SettingError, UsageError, find_similar
from sealpipe.secret import Secret
from sealpipe.settings import FIRST, GLOBAL, Setting

MACHINE_CONFIG = Path("/etc/sealpipe/config.toml")
"""Settings that the machine's administrator enforces for all users; only its `[enforce]` table is
read.
"""

TEST_VARIABLES = {
    "SEALPIPE_TESTS_STRICT",
    "SEALPIPE_LIVE_BASE_URL",
    "SEALPIPE_LIVE_LINK_BASE_URL",
    "SEALPIPE_LIVE_API_KEY",
}
"""Variables of the project's own tests (docs/CONTRIBUTING.md and
docs/contributing/live-tests.md).
"""

PREFIXES = ("SEALPIPE_PLUGIN_", "SEALPIPE_STORE__")
"""Prefixes of variables that plugins and named stores check themselves."""

_CREDENTIAL_LIMIT: Final = 4096
"""Maximum size in bytes of a credential file."""


class Config:
    """The configuration of a run in one environment.

    Reads each file once, when it is first needed.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ

    @cached_property
    def path(self) -> Path | None:
        """The user's config file, or None if missing.

        SEALPIPE_CONFIG, else $XDG_CONFIG_HOME/sealpipe/config.toml.
        """
        named = self.environ.get("SEALPIPE_CONFIG")
        if named:
            return Path(named)
        folder = find_config_folder(self.environ)
        path = None if folder is None else folder / "config.toml"
        return path if path is not None and path.exists() else None

    @property
    def user(self) -> dict[str, Any]:
        """The user's config file as a table; empty if there is none.

        SettingError never shows a value.
        """
        config, errors = self._user_file
        if not errors:
            return config
        raise self.add_mistakes(
            SettingError(errors[0].message, remedy=errors[0].remedy), (errors[0].message,)
        )

    @property
    def usable_user(self) -> dict[str, Any]:
        """The valid part of the user's config file, for the doctor."""
        return self._user_file[0]

    def add_mistakes(self, error: UsageError, known: tuple[str, ...]) -> UsageError:
        """Add the config file's other mistakes to an error, as notes.

        One of `known` begins the message of its own.
        """
        for each in [*self.errors, *self.find_invalid_values()]:
            if not each.message.startswith(known):
                error.add_note(
                    Note(f"{each.message}; {each.remedy}" if each.remedy else each.message)
                )
        return error

    def find_invalid_values(self) -> Iterator[SettingError]:
        """Find values of the config file that the options of any command would refuse."""
        from sealpipe.config_file import check_value  # for an error only

        user = self.usable_user
        tables = [
            ("", user, GLOBAL),
            *((f"{name}.", get_command_table(user, name), COMMANDS[name]) for name in COMMANDS),
        ]
        for prefix, table, settings in tables:
            for setting in settings:
                try:
                    check_value(
                        setting,
                        table.get(setting.name, ""),
                        f"the config file's {prefix}{setting.name}",
                    )
                except SettingError as error:
                    yield error

    @property
    def errors(self) -> list[SettingError]:
        """All errors in the user's config file."""
        return self._user_file[1]

    @cached_property
    def machine(self) -> dict[str, Any]:
        """The machine's config file; empty if there is none. SettingError if it cannot be read."""
        try:
            _check(MACHINE_CONFIG, MACHINE_CONFIG.stat(), "the machine's config file", self.environ)
            from sealpipe.config_file import parse_toml  # most machines have none

            config = parse_toml(MACHINE_CONFIG, "the machine's config file")
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise SettingError(
                f"the machine's config file {MACHINE_CONFIG} cannot be read: {error.strerror}"
            ) from None
        if unknown := sorted(config.keys() - {"enforce"}):
            raise SettingError(
                f"the machine's config file {MACHINE_CONFIG} sets {unknown[0]!r}: only "
                "[enforce] is read there"
            )
        return config

    @property
    def batch_rows_per_hour(self) -> int | None:
        """How many rows of batches an hour the machine lets create something, or None.

        Raises SettingError.
        """
        table = self.machine.get("enforce", {}).get("batch")
        if table is None:
            return None
        most = (
            table.get("most_rows_per_hour") if isinstance(table, dict) and len(table) == 1 else None
        )
        if isinstance(most, int) and not isinstance(most, bool) and most > 0:
            return most
        raise SettingError(
            (
                "the machine's enforce.batch does not set most_rows_per_hour, and nothing "
                "else, to a number from 1"
            ),
            remedy="ask this machine's administrator to correct it",
        )

    def read_api_key(self, file: str | None) -> Secret | None:
        """Return the credential of SEALPIPE_API_KEY or its file (less one newline), or None.

        Raises SettingError if both are set, CredentialError if the file cannot be used.
        """
        value = self.environ.get("SEALPIPE_API_KEY")
        if value and file:
            raise SettingError(
                "both SEALPIPE_API_KEY and SEALPIPE_API_KEY_FILE are set",
                remedy="unset one of the two variables",
            )
        return (
            Secret(value)
            if value
            else None
            if not file
            else _read_credential(Path(file), self.environ)
        )

    @property
    def previous_api_key(self) -> Secret | None:
        """The previous credential: opens what was sealed to it, and is never sent.

        None if not set.
        """
        value = self.environ.get("SEALPIPE_API_KEY_PREVIOUS")
        return Secret(value) if value else None

    def find_unknown_variables(self) -> list[tuple[str, str | None]]:
        """Return the SEALPIPE_* variables that nothing reads, each with the nearest known name."""
        candidates = [
            name
            for name in self.environ
            if name.startswith("SEALPIPE_") and not name.startswith(PREFIXES)
        ]
        unknown = set(candidates) - list_known_variables(FIRST) if candidates else ()
        if not unknown:
            return []
        known = list_known_variables()
        return [
            (name, next(iter(find_similar(name, known)), None)) for name in sorted(unknown - known)
        ]

    @cached_property
    def _user_file(self) -> tuple[dict[str, Any], list[SettingError]]:
        path = self.path
        if path is None:
            return {}, []
        from sealpipe import config_file

        try:
            _check(path, path.stat(), "the config file", self.environ)
            config = config_file.parse_toml(path, "the config file")
        except SettingError as error:
            return {}, [error]
        except OSError as error:
            remedy = (
                "check SEALPIPE_CONFIG, which names it"
                if self.environ.get("SEALPIPE_CONFIG")
                else "check it"
            )
            return {}, [
                SettingError(
                    f"the config file {path} cannot be read: {error.strerror}", remedy=remedy
                )
            ]
        flaws = list(config_file.find_flaws(path, config))
        return config_file.remove_flaws(config, flaws), [each.error for each in flaws]


def find_config_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the user's config folder, which may not exist, or None if none is named.

    Ignores a relative XDG_CONFIG_HOME, as the XDG specification says: nothing is read from the
    working directory.
    """
    folder = (
        Path(environ.get("XDG_CONFIG_HOME") or f"{environ.get('HOME', '')}/.config") / "sealpipe"
    )
    return folder if folder.is_absolute() else None


def list_known_variables(commands: Mapping[str, tuple[Setting, ...]] = COMMANDS) -> set[str]:
    """Return every SEALPIPE_* name that is read, by these commands or any."""
    names = (
        {setting.get_variable() for setting in GLOBAL}
        | {"SEALPIPE_CONFIG", "SEALPIPE_SEALED_LINK"}
        | TEST_VARIABLES
    )
    for command, settings in commands.items():
        names |= {setting.get_variable(command) for setting in settings}
    return names


def _check(path: Path, status: os.stat_result, what: str, environ: Mapping[str, str]) -> None:
    flaw = permissions.find_file_flaw(path, status, what, environ)
    if flaw is not None:
        raise SettingError(flaw[0], remedy=flaw[1])


def _read_credential(path: Path, environ: Mapping[str, str]) -> Secret:
    if "_sk_live_" in str(path):
        raise CredentialError(
            "the path of the credential file is itself a credential: it is not shown",
            remedy=(
                "set SEALPIPE_API_KEY to it, or store it in a file (in GitLab, use a variable "
                "of type File)"
            ),
        )
    try:
        with path.open("rb") as file:
            content = file.read(_CREDENTIAL_LIMIT + 1)
            found = os.fstat(file.fileno())
    except OSError as error:
        raise CredentialError(
            f"the credential file {path} cannot be read: {error.strerror}"
        ) from None
    flaw = permissions.find_file_flaw(path, found, "the credential file", environ, "600")
    if flaw is not None:
        raise CredentialError(flaw[0], remedy=flaw[1])
    if len(content) > _CREDENTIAL_LIMIT:
        raise CredentialError(
            f"the credential file {path} is larger than {_CREDENTIAL_LIMIT} bytes",
            remedy="set SEALPIPE_API_KEY_FILE to a file that contains only the credential",
        )
    try:
        return Secret(content.decode("ascii").removesuffix("\n").removesuffix("\r"))
    except UnicodeDecodeError:
        pass
    raise CredentialError(f"the credential file {path} is not plain text")
