"""Enforce what the machine's config file fixes: its `[enforce.service]` wins over every other setting.

    [enforce.service]
    base_url = "https://api.example.com/v1"
    link_base_url = "https://example.com"
    ca_file = "/etc/sealpipe/ca.pem"       # or "system": the system's certificates, and no others

Its values are the defaults; a different value from anywhere else is refused before anything is sent.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from sealpipe import setting_values
from sealpipe.errors import PolicyError, SettingError, UsageError

_TRUST: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables that name certificates to trust in place of the system's."""


SYSTEM: Final = "system"
"""In place of a CA file: only the system's certificates."""


def _path(text: str) -> str:
    if text == SYSTEM:
        return text
    if not Path(text).is_absolute():
        raise SettingError("the path is not absolute")
    return os.path.normpath(text)


_FIXED: Final[Mapping[str, Callable[[str], str]]] = {
    "base_url": setting_values.parse_base_url,
    "link_base_url": setting_values.parse_link_base_url,
    "ca_file": _path,
}


def enforce_service(
    machine: Mapping[str, Any], given: Mapping[str, str | None], environ: Mapping[str, str]
) -> dict[str, str | None]:
    """Return base URL, link base URL and CA file: as `given`, completed with what the machine fixes.

    Raises PolicyError where something else is given, SettingError where the table is wrong.
    """
    found = {**given}
    for name, fixed in _table(machine).items():
        value = given.get(name)
        if value and _same(name, value) != fixed:
            raise PolicyError(
                f"this machine fixes {name} to {fixed}, but a different value is set",
                remedy=f"unset SEALPIPE_{name.upper()}, and remove {name} from the config file and the call",
            )
        found[name] = None if name == "ca_file" and fixed == SYSTEM else fixed
    if "ca_file" in _table(machine):
        for variable in _TRUST:
            if environ.get(variable) and environ[variable] != found["ca_file"]:
                raise PolicyError(
                    f"this machine fixes ca_file, but {variable} names other certificates",
                    remedy=f"unset {variable}",
                )
    return found


def _same(name: str, value: str) -> str:
    """As the machine's own is spelled; what is none of its kind is told later, by who reads it."""
    try:
        return os.path.abspath(value) if name == "ca_file" else _FIXED[name](value)  # noqa: PTH100 - links stay
    except UsageError:
        return value


def _table(machine: Mapping[str, Any]) -> dict[str, str]:
    enforce = machine.get("enforce", {})
    table = enforce.get("service", {}) if isinstance(enforce, Mapping) else {}
    if not isinstance(table, Mapping):
        raise SettingError("the machine's enforce.service is not a table", remedy="write [enforce.service]")
    found = {}
    for name, value in table.items():
        if name not in _FIXED:
            known = ", ".join(_FIXED)
            raise SettingError(
                f"the machine's enforce.service sets {name[:40]!r}, which is not a setting",
                remedy=f"choose from {known}",
            )
        why = "the value is not a string"
        if isinstance(value, str):
            try:
                found[name] = _FIXED[name](value)
                continue
            except UsageError as error:
                why = error.message
        raise SettingError(
            f"the machine's enforce.service.{name}: {why}", remedy="ask this machine's administrator to correct it"
        )
    return found
