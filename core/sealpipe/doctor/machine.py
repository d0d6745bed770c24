"""Checks of this machine: settings and the form of the credential.

The state directory and its outbox.
"""

from __future__ import annotations

import os
import platform
import secrets
import shutil
import stat
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from sealpipe import permissions
from sealpipe.api.operation import Credential
from sealpipe.command_settings import COMMANDS, get_command_table
from sealpipe.config import Config
from sealpipe.config_file import check_value
from sealpipe.doctor.findings import Finding, report_failure, report_ok, report_warning
from sealpipe.errors import SettingError, StateError, UsageError
from sealpipe.session import open_credential, open_previous
from sealpipe.settings import GLOBAL, Setting
from sealpipe.state.files import (
    create_file,
    find_state_directory,
    identify_run,
    make_private_directory,
    remove_file,
)
from sealpipe.state.outbox import Outbox
from sealpipe.version import __version__

_REQUIRED = {
    "base_url": "set SEALPIPE_BASE_URL to the service's API, which ends in /v1 (without an "
    "account: `sealpipe rehearse`)",
    "link_base_url": (
        "set SEALPIPE_LINK_BASE_URL to the address that the service's links start with"
    ),
}


class GivenSetting(NamedTuple):
    """A setting's value (a UsageError if it is invalid), and where it comes from, for people.

    `location` names the variable or the config file's setting that it comes from; empty for
    neither.
    """

    value: Any
    origin: str
    location: str = ""

    def get_usable(self) -> Any:
        """Return the value; None if it is invalid."""
        return None if isinstance(self.value, UsageError) else self.value


Settings = Mapping[str, GivenSetting]
"""By name, one for each global setting that is not secret."""


def check_settings(settings: Settings, config: Config) -> Iterator[Finding]:
    """Report the program's version and the global settings.

    Optional settings that are not set are left out.
    """
    version = platform.python_version()
    yield report_ok(
        "sealpipe",
        f"{__version__}, Python {version}, {platform.system()} {platform.machine()}, {sys.prefix}",
    )
    yield report_ok("config file", "not present" if config.path is None else str(config.path))
    for setting in GLOBAL:
        if setting.name in settings:
            yield from _check_setting(
                setting.name, settings[setting.name], config.environ, setting.get_variable()
            )
    for name, near in config.find_unknown_variables():
        yield report_warning(
            f"variable {name}", "unknown variable", f"did you mean {near}?" if near else "unset it"
        )


def _check_setting(
    name: str, value: GivenSetting, environ: Mapping[str, str], variable: str
) -> Iterator[Finding]:
    check = f"setting {name}"
    if isinstance(value.value, UsageError):
        yield report_failure(check, value.value)
    elif value.value is not None:
        text = f"{value.value:g} s" if isinstance(value.value, float) else value.value
        yield report_ok(check, f"{text} ({value.origin})")
    elif name in _REQUIRED:
        empty = environ.get(variable) == ""
        what = f"{variable} is set but empty" if empty else f"{variable} is not set"
        yield report_failure(check, SettingError(what, remedy=_REQUIRED[name]))


class _Value(NamedTuple):
    setting: Setting
    value: Any
    location: str


def check_values(config: Config, locations: Collection[str]) -> Iterator[Finding]:
    """Report each invalid value, by name and never by value; then the number of valid ones.

    `locations` are those of values that the report already contains.
    """
    values = [
        each
        for each in _set_values(config.environ, config.usable_user)
        if each.location not in locations
    ]
    valid = []
    for each in values:
        try:
            check_value(each.setting, each.value, each.location)
            valid.append(each.location)
        except SettingError as error:
            yield report_failure(each.location, error)
    if valid:
        yield report_ok("other settings", f"{len(valid)} can be used: {', '.join(valid)}")


def _set_values(environ: Mapping[str, str], config: Mapping[str, Any]) -> Iterator[_Value]:
    for command, setting in _all():
        if value := environ.get(setting.get_variable(command)):
            yield _Value(setting, value, f"variable {setting.get_variable(command)}")
    for command, setting in _all():
        table = get_command_table(config, command) if command else config
        if setting.name in table:
            yield _Value(
                setting,
                table[setting.name],
                f"config file's {command}{'.' if command else ''}{setting.name}",
            )


def _all() -> Iterable[tuple[str, Setting]]:
    """Yield command and setting; the command is empty for global ones.

    `check_credential` reports the secret ones.
    """
    yield from (("", setting) for setting in GLOBAL if not setting.secret)
    yield from (
        (command, setting) for command, settings in COMMANDS.items() for setting in settings
    )


_PARTS = {
    False: "two parts: shares keep no copy for the account owner, and there are no custody keys",
    True: "three parts: the custody secret stays on this machine",
}


def check_credential(settings: Settings, config: Config) -> tuple[Credential | None, list[Finding]]:
    """Return the credential, if there is a valid one, and the findings."""
    file = settings["api_key_file"].get_usable()
    try:
        credential = open_credential(
            config.read_api_key(file), settings["service_tag"].get_usable()
        )
    except SettingError as error:
        return None, [report_failure("credential", error), *_check_extras(file, config.environ)]
    origin = "SEALPIPE_API_KEY" if not file else f"{file}, {settings['api_key_file'].origin}"
    finding = report_ok("credential", f"{_describe_form(credential)} ({origin})")
    return credential, [finding, *_check_extras(file, config.environ)]


def _describe_form(credential: Credential) -> str:
    return (
        f"tag {credential.tag}, key id {credential.key_id}, "
        f"{_PARTS[credential.custody_secret is not None]}"
    )


def _check_extras(file: str | None, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Check the permissions of the credential's file, and the previous credential."""
    if file:
        with suppress(OSError):  # an unreadable file is already reported
            mode = stat.S_IMODE(Path(file).stat().st_mode)
            if permissions.is_readable_by_others(Path(file), environ):
                yield report_warning(
                    "credential file",
                    f"{file} is open to others (mode {mode:04o})",
                    f"chmod 600 {file}",
                )
    previous = environ.get("SEALPIPE_API_KEY_PREVIOUS")
    if previous:
        try:
            yield report_ok(
                "previous credential",
                f"{_describe_form(open_previous(previous))} (SEALPIPE_API_KEY_PREVIOUS)",
            )
        except SettingError as error:
            yield report_failure("previous credential", error)


_TEST_CONTENT = bytes(4096)


def check_state_directory(
    settings: Settings, environ: Mapping[str, str], credential: Credential | None
) -> Iterator[Finding]:
    """Check state directory and outbox. Missing directories are created temporarily."""
    try:
        folder = find_state_directory(environ, settings["state_dir"].get_usable())
        outbox_path = folder / "outbox"
        yield report_ok("state directory", f"{folder}, {_describe_access(outbox_path)}")
        entries = Outbox(outbox_path, None).list(every_run=True)
    except StateError as error:
        yield report_failure("state directory", error)
        return
    if outbox_path.is_dir() and stat.S_IMODE(outbox_path.stat().st_mode) & 0o077:
        yield report_warning(
            "state directory", f"{outbox_path} is open to others", f"chmod 700 {outbox_path}"
        )
    if not entries:
        yield report_ok("outbox", "empty")
        return
    own_entries = [entry for entry in entries if entry.run == identify_run(environ)]
    foreign_entries = [
        entry for entry in entries if credential is not None and entry.key_id != credential.key_id
    ]
    details = [f"{len(entries)} left, the oldest of {entries[0].created_at:%Y-%m-%d %H:%M} UTC"]
    details += (
        [f"{len(entries) - len(own_entries)} from other CI runs"]
        if len(own_entries) < len(entries)
        else []
    )
    details += [f"{len(foreign_entries)} created with another API key"] if foreign_entries else []
    yield report_warning(
        "outbox",
        ", ".join(details),
        "`sealpipe resume` finishes them; `sealpipe resume --list --all` lists them",
    )


def _describe_access(box: Path) -> str:
    """Test whether the outbox can be written, and describe it. Raises StateError if it cannot."""
    if os.path.lexists(box):
        status = box.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            raise StateError(f"{box} is not a directory owned by this user")
        _try_write(box, box)
        return f"mode {stat.S_IMODE(status.st_mode):04o}, writable"
    _try_in_sibling(box)
    return "does not exist yet, can be created"


def _try_in_sibling(box: Path) -> None:
    """Create the missing directories under another name, write there, and remove them all.

    Not under their real name: a command that starts meanwhile could use the directory and then lose
    it.
    """
    existing = next(parent for parent in box.parents if os.path.lexists(parent))
    trial = existing / f".sealpipe-doctor-{secrets.token_hex(6)}"
    try:
        trial.mkdir(mode=0o700)
    except OSError as error:
        raise StateError(f"{box} cannot be created: {existing}: {error.strerror}") from None
    try:
        try:
            folder = make_private_directory(trial / box.relative_to(existing))
        except StateError as error:
            raise StateError(
                f"{box} cannot be created: {error.message}", remedy=error.remedy
            ) from None
        _try_write(folder, box)
    finally:
        shutil.rmtree(trial, ignore_errors=True)


def _try_write(folder: Path, box: Path) -> None:
    path = folder / f".doctor-{secrets.token_hex(6)}"
    try:
        create_file(path, lambda: [_TEST_CONTENT])  # syncs the file and the folder
        remove_file(path)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise StateError(f"{box} cannot be written: {error.strerror}") from None
