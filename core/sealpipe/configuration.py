"""What was set: the environment, the user's config file, and the credential in either of its two places."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sealpipe.errors import CredentialError, SettingError
from sealpipe.secret import Secret
from sealpipe.settings import COMMANDS, GLOBAL

OF_OUR_TESTS = {
    "SEALPIPE_TESTS_STRICT",
    "SEALPIPE_LIVE_BASE_URL",
    "SEALPIPE_LIVE_LINK_BASE_URL",
    "SEALPIPE_LIVE_API_KEY",
}
"""Names that mean something to the project's own tests (docs/testing.md)."""

OWN_TABLES = ("stores", "plugins", "audit", "policy", "oversight", "allow_plugins")
"""What the config file holds beside settings: plugins and those who oversee them."""

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
        text = MACHINE.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError):
        raise SettingError(f"the machine's config file {MACHINE} cannot be read") from None
    import tomllib

    try:
        config = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        raise SettingError(f"the machine's config file {MACHINE} is not TOML") from None
    if strange := sorted(config.keys() - {"enforce"}):
        raise SettingError(f"the machine's config file {MACHINE} sets {strange[0]!r}: only [enforce] is read there")
    return config


def read_config(environ: Mapping[str, str]) -> dict[str, Any]:
    """The config file as a table; empty where there is none. SettingError names what is wrong in it, never a value."""
    path = config_path(environ)
    if path is None:
        return {}
    import tomllib

    try:
        config = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingError(f"the config file {path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError):
        raise SettingError(f"the config file {path} is not TOML", remedy="check it with a TOML linter") from None
    _check_config(path, config)
    return config


def _check_config(path: Path, config: Mapping[str, Any]) -> None:
    allowed = {setting.name for setting in GLOBAL if not setting.secret}
    for name, value in config.items():
        if name in ("api_key", "api_key_previous"):
            raise SettingError(
                f"the config file {path} holds a credential in clear",
                remedy="put it into a file of its own (0600) and name that with api_key_file",
            )
        # `plugins` is a table of its own, not the settings of the command of that name.
        inner = {setting.name for setting in COMMANDS.get(name, ())} if name != "plugins" else set()
        unknown = set(value) - inner if isinstance(value, dict) and inner else set()
        if unknown or (name not in allowed and name not in COMMANDS and name not in OWN_TABLES):
            strange = f"{name}.{sorted(unknown)[0]}" if unknown else name
            raise SettingError(f"the config file {path} sets {strange!r}, which does not exist")


def api_key(environ: Mapping[str, str], file: str | None) -> Secret | None:
    """The credential, from SEALPIPE_API_KEY or from a file (whose one final newline is dropped); None for neither."""
    value = environ.get("SEALPIPE_API_KEY")
    if value and file:
        raise SettingError(
            "both SEALPIPE_API_KEY and SEALPIPE_API_KEY_FILE are set",
            remedy="unset one: it must be clear which is meant",
        )
    return Secret(value) if value else None if not file else _key_file(Path(file))


def previous_api_key(environ: Mapping[str, str]) -> Secret | None:
    """The credential before this one: it opens what was sealed to it, and is never sent. None where there is none."""
    value = environ.get("SEALPIPE_API_KEY_PREVIOUS")
    return Secret(value) if value else None


def _key_file(path: Path) -> Secret:
    try:
        with path.open("rb") as file:
            content = file.read(_CREDENTIAL_LIMIT)
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
    except OSError as error:
        raise CredentialError(f"the credential file {path} cannot be read: {error.strerror}") from None
    if mode & 0o002:
        raise CredentialError(f"everybody may write the credential file {path}", remedy=f"chmod 600 {path}")
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
