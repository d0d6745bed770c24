"""What was set: the environment, the user's config file, and the credential in either of its two places."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sealpipe import permissions
from sealpipe.errors import CredentialError, SettingError
from sealpipe.secret import Secret
from sealpipe.settings import COMMANDS, GLOBAL

OF_OUR_TESTS = {
    "SEALPIPE_TESTS_STRICT",
    "SEALPIPE_LIVE_BASE_URL",
    "SEALPIPE_LIVE_LINK_BASE_URL",
    "SEALPIPE_LIVE_API_KEY",
}
"""Names that mean something to the project's own tests (docs/how-to/test-your-code.md)."""

PREFIXES = ("SEALPIPE_PLUGIN_", "SEALPIPE_STORE__")
"""Names that plugins and named stores use; they check their own."""

_CREDENTIAL_LIMIT = 4096


def config_path(environ: Mapping[str, str]) -> Path | None:
    """The user's config file: SEALPIPE_CONFIG, else $XDG_CONFIG_HOME/sealpipe/config.toml; None for none."""
    named = environ.get("SEALPIPE_CONFIG")
    if named:
        return Path(named)
    home = environ.get("XDG_CONFIG_HOME") or f"{environ.get('HOME', '')}/.config"
    # A relative XDG_CONFIG_HOME would be read from the working directory: the XDG specification ignores it, too.
    path = Path(home) / "sealpipe" / "config.toml"
    return path if path.is_absolute() and path.exists() else None


MACHINE = Path("/etc/sealpipe/config.toml")
"""What the machine's administrator fixes for everybody; only its `[enforce]` is read."""


def read_machine_config() -> dict[str, Any]:
    """The machine's config file; empty where there is none. SettingError where it cannot be read: nothing goes on."""
    try:
        _check(MACHINE, MACHINE.stat(), "the machine's config file", os.environ)
        from sealpipe.config_file import parsed  # most have none

        config = parsed(MACHINE, "the machine's config file")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingError(f"the machine's config file {MACHINE} cannot be read: {error.strerror}") from None
    if strange := sorted(config.keys() - {"enforce"}):
        raise SettingError(f"the machine's config file {MACHINE} sets {strange[0]!r}: only [enforce] is read there")
    return config


def read_config(environ: Mapping[str, str]) -> dict[str, Any]:
    """The config file as a table; empty where there is none. SettingError names what is wrong in it, never a value."""
    config, wrong = look_at_config(environ)
    if not wrong:
        return config
    remedy = wrong[0].remedy
    if len(wrong) > 1:
        remedy += f"{'' if remedy.endswith('?') else ';'} {len(wrong) - 1} more are wrong: see `sealpipe doctor`"
    raise SettingError(wrong[0].message, remedy=remedy)


def look_at_config(environ: Mapping[str, str]) -> tuple[dict[str, Any], list[SettingError]]:
    """The config file as far as it can be used, and all that is wrong in it: for the doctor, who goes on."""
    path = config_path(environ)
    if path is None:
        return {}, []
    from sealpipe import config_file

    try:
        _check(path, path.stat(), "the config file", environ)
        config = config_file.parsed(path, "the config file")
    except SettingError as error:
        return {}, [error]
    except OSError as error:
        return {}, [SettingError(f"the config file {path} cannot be read: {error.strerror}")]
    wrong = list(config_file.problems(path, config))
    return config_file.usable(config, wrong), [each.error for each in wrong]


def _check(path: Path, found: os.stat_result, what: str, environ: Mapping[str, str]) -> None:
    flaw = permissions.file_flaw(path, found, what, environ)
    if flaw is not None:
        raise SettingError(flaw[0], remedy=flaw[1])


def api_key(environ: Mapping[str, str], file: str | None) -> Secret | None:
    """The credential, from SEALPIPE_API_KEY or from a file (whose one final newline is dropped); None for neither."""
    value = environ.get("SEALPIPE_API_KEY")
    if value and file:
        raise SettingError(
            "both SEALPIPE_API_KEY and SEALPIPE_API_KEY_FILE are set",
            remedy="unset one: it must be clear which is meant",
        )
    return Secret(value) if value else None if not file else _key_file(Path(file), environ)


def previous_api_key(environ: Mapping[str, str]) -> Secret | None:
    """The credential before this one: it opens what was sealed to it, and is never sent. None where there is none."""
    value = environ.get("SEALPIPE_API_KEY_PREVIOUS")
    return Secret(value) if value else None


def _key_file(path: Path, environ: Mapping[str, str]) -> Secret:
    if "_sk_live_" in str(path):
        raise CredentialError(
            "the credential file's name is a credential itself: it is not shown",
            remedy="set SEALPIPE_API_KEY to it, or make it a file (in GitLab, a variable of type File)",
        )
    try:
        with path.open("rb") as file:
            content = file.read(_CREDENTIAL_LIMIT)
            found = os.fstat(file.fileno())
    except OSError as error:
        raise CredentialError(f"the credential file {path} cannot be read: {error.strerror}") from None
    flaw = permissions.file_flaw(path, found, "the credential file", environ, "600")
    if flaw is not None:
        raise CredentialError(flaw[0], remedy=flaw[1])
    try:
        return Secret(content.decode("ascii").removesuffix("\n").removesuffix("\r"))
    except UnicodeDecodeError:
        pass
    raise CredentialError(f"the credential file {path} is not plain text")


def known_variables() -> set[str]:
    """Every SEALPIPE_* name that means something."""
    names = {setting.variable() for setting in GLOBAL} | {"SEALPIPE_CONFIG", "SEALPIPE_SEALED_LINK"} | OF_OUR_TESTS
    for command, settings in COMMANDS.items():
        names |= {setting.variable(command) for setting in settings}
    return names


def unknown_variables(environ: Mapping[str, str]) -> list[tuple[str, str | None]]:
    """SEALPIPE_* names that mean nothing, each with the nearest known one."""
    suspects = [name for name in environ if name.startswith("SEALPIPE_") and not name.startswith(PREFIXES)]
    known = known_variables() if suspects else set()
    strange = sorted(set(suspects) - known)
    if not strange:
        return []
    from difflib import get_close_matches

    return [(name, next(iter(get_close_matches(name, known, 1)), None)) for name in strange]
