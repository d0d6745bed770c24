"""Check what is set up on this machine: settings and the form of the credential; the state directory and its outbox."""

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

from sealpipe import __version__, permissions
from sealpipe.config import Config
from sealpipe.config_file import OWN_TABLES
from sealpipe.credential import Credential
from sealpipe.doctor import Finding, failure, ok, warning
from sealpipe.errors import SettingError, StateError, UsageError
from sealpipe.flows.session import open_credential
from sealpipe.setting_values import check_value
from sealpipe.settings import COMMANDS, GLOBAL, Setting
from sealpipe.state import current_run, files, make_private_directory, state_directory
from sealpipe.state.outbox import Outbox

_REQUIRED = {
    "base_url": "set SEALPIPE_BASE_URL to the service's API; it ends in /v1",
    "link_base_url": "set SEALPIPE_LINK_BASE_URL to the address that the service's links start with",
}


class GivenSetting(NamedTuple):
    """A setting's value (a UsageError where it is wrong), and where it comes from, for people.

    `place` names the variable, or the line of the config file, that gives it; empty for neither.
    """

    value: Any
    origin: str
    place: str = ""

    def usable(self) -> Any:
        """The value; None where it is wrong."""
        return None if isinstance(self.value, UsageError) else self.value


Settings = Mapping[str, GivenSetting]
"""By name, one for each global setting that is no secret."""


def check_settings(settings: Settings, config: Config) -> Iterator[Finding]:
    """Program and settings. What is optional and not set is left out."""
    version = platform.python_version()
    yield ok("sealpipe", f"{__version__}, Python {version}, {platform.system()} {platform.machine()}, {sys.prefix}")
    yield ok("config file", "not present" if config.path is None else str(config.path))
    for setting in GLOBAL:
        if setting.name in settings:
            yield from _setting(setting.name, settings[setting.name], config.environ, setting.variable())
    for name, near in config.unknown_variables():
        yield warning(f"variable {name}", "unknown variable", f"did you mean {near}?" if near else "unset it")


def _setting(name: str, given: GivenSetting, environ: Mapping[str, str], variable: str) -> Iterator[Finding]:
    check = f"setting {name}"
    if isinstance(given.value, UsageError):
        yield failure(check, given.value)
    elif given.value is not None:
        shown = f"{given.value:g} s" if isinstance(given.value, float) else given.value
        yield ok(check, f"{shown} ({given.origin})")
    elif name in _REQUIRED:
        empty = environ.get(variable) == ""
        what = f"{variable} is set but empty" if empty else f"{variable} is not set"
        yield failure(check, SettingError(what, remedy=_REQUIRED[name]))


class _Value(NamedTuple):
    setting: Setting
    value: Any
    where: str


def check_values(config: Config, told: Collection[str]) -> Iterator[Finding]:
    """Each that is wrong, with its name and never its value; then how many are right.

    `told` are the places of values that the report has told already.
    """
    found = [each for each in _set_values(config.environ, config.usable) if each.where not in told]
    right = []
    for each in found:
        try:
            check_value(each.setting, each.value, each.where)
            right.append(each.where)
        except SettingError as error:
            yield failure(each.where, error)
    if right:
        yield ok("other settings", f"{len(right)} can be used: {', '.join(right)}")


def _set_values(environ: Mapping[str, str], config: Mapping[str, Any]) -> Iterator[_Value]:
    for command, setting in _all():
        if value := environ.get(setting.variable(command)):
            yield _Value(setting, value, f"variable {setting.variable(command)}")
    for command, setting in _all():
        # `plugins` is a table of its own there, not the settings of the command of that name.
        table = config if not command else {} if command in OWN_TABLES else config.get(command, {})
        if setting.name in table:
            yield _Value(setting, table[setting.name], f"config file's {command}{'.' if command else ''}{setting.name}")


def _all() -> Iterable[tuple[str, Setting]]:
    """Command and setting; no command for the global ones. The secrets are the credential's check to tell."""
    yield from (("", setting) for setting in GLOBAL if not setting.secret)
    yield from ((command, setting) for command, settings in COMMANDS.items() for setting in settings)


_PARTS = {
    False: "two parts: shares keep no copy for the account owner, and there are no custody keys",
    True: "three parts: the custody secret stays on this machine",
}


def check_credential(settings: Settings, config: Config) -> tuple[Credential | None, list[Finding]]:
    """The credential, where there is one that can be used, and what there is to tell."""
    file = settings["api_key_file"].usable()
    try:
        credential = open_credential(config.api_key(file), settings["service_tag"].usable())
    except SettingError as error:
        return None, [failure("credential", error), *_rest(file, config.environ)]
    origin = "SEALPIPE_API_KEY" if not file else f"{file}, {settings['api_key_file'].origin}"
    found = ok("credential", f"{_form(credential)} ({origin})")
    return credential, [found, *_rest(file, config.environ)]


def _form(credential: Credential) -> str:
    return f"tag {credential.tag}, key id {credential.key_id}, {_PARTS[credential.custody_secret is not None]}"


def _rest(file: str | None, environ: Mapping[str, str]) -> Iterator[Finding]:
    """How the file is kept, and the credential before this one."""
    if file:
        with suppress(OSError):  # a file that cannot be read is told already
            mode = stat.S_IMODE(Path(file).stat().st_mode)
            if permissions.readable_by_others(Path(file), environ):
                yield warning("credential file", f"{file} is open to others (mode {mode:04o})", f"chmod 600 {file}")
    previous = environ.get("SEALPIPE_API_KEY_PREVIOUS")
    if previous:
        try:
            yield ok("previous credential", f"{_form(Credential.parse(previous))} (SEALPIPE_API_KEY_PREVIOUS)")
        except SettingError as error:
            yield failure("previous credential", error)


_TRIAL = bytes(4096)


def check_state_directory(
    settings: Settings, environ: Mapping[str, str], credential: Credential | None
) -> Iterator[Finding]:
    """Folder and outbox. What is missing is made and written for a try, and taken away: the first share makes it."""
    try:
        folder = state_directory(environ, settings["state_dir"].usable())
        box = folder / "outbox"
        yield ok("state directory", f"{folder}, {_writable(box)}")
        left = Outbox(box, None).list(every_run=True)
    except StateError as error:
        yield failure("state directory", error)
        return
    if box.is_dir() and stat.S_IMODE(box.stat().st_mode) & 0o077:
        yield warning("state directory", f"{box} is open to others", f"chmod 700 {box}")
    if not left:
        yield ok("outbox", "empty")
        return
    ours = [entry for entry in left if entry.run == current_run(environ)]
    others = [entry for entry in left if credential is not None and entry.key_id != credential.key_id]
    told = [f"{len(left)} left, the oldest of {left[0].created_at:%Y-%m-%d %H:%M} UTC"]
    told += [f"{len(left) - len(ours)} from other CI runs"] if len(ours) < len(left) else []
    told += [f"{len(others)} created with another API key"] if others else []
    yield warning(
        "outbox", ", ".join(told), "`sealpipe resume` finishes them; `sealpipe resume --list --all` lists them"
    )


def _writable(box: Path) -> str:
    """How it stands with writing there, by doing it; StateError where that fails."""
    if os.path.lexists(box):
        found = box.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise StateError(f"{box} is not a directory owned by this user")
        _try(box, box)
        return f"mode {stat.S_IMODE(found.st_mode):04o}, writable"
    _try_beside(box)
    return "does not exist yet, can be created"


def _try_beside(box: Path) -> None:
    """Make the missing folders under another name, write there, and take all away.

    Not under their own: a command that starts meanwhile may find the folder, and lose it again.
    """
    there = next(parent for parent in box.parents if os.path.lexists(parent))
    trial = there / f".sealpipe-doctor-{secrets.token_hex(6)}"
    try:
        trial.mkdir(mode=0o700)
    except OSError as error:
        raise StateError(f"{box} cannot be created: {there}: {error.strerror}") from None
    try:
        try:
            folder = make_private_directory(trial / box.relative_to(there))
        except StateError as error:
            raise StateError(f"{box} cannot be created: {error.message}", remedy=error.remedy) from None
        _try(folder, box)
    finally:
        shutil.rmtree(trial, ignore_errors=True)


def _try(folder: Path, box: Path) -> None:
    path = folder / f".doctor-{secrets.token_hex(6)}"
    try:
        files.create(path, lambda: [_TRIAL])  # it syncs the file and the folder
        files.remove(path)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise StateError(f"{box} cannot be written: {error.strerror}") from None
