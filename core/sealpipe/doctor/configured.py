"""Which settings there are, and where each comes from: flag, environment, config file or default."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sealpipe._version import __version__
from sealpipe.config import config_path, unknown_variables
from sealpipe.doctor.finding import Finding, doubtful, failed, fine
from sealpipe.errors import SettingError, UsageError
from sealpipe.settings import GLOBAL

_REQUIRED = {
    "base_url": "set SEALPIPE_BASE_URL to the service's API; it ends in /v1",
    "link_base_url": "set SEALPIPE_LINK_BASE_URL to the address that the service's links start with",
}


class Given(NamedTuple):
    """A setting's value (a UsageError where it is wrong), and where it comes from, for people.

    `place` names the variable, or the line of the config file, that gives it; empty for neither.
    """

    value: Any
    origin: str
    place: str = ""

    def usable(self) -> Any:
        """The value; None where it is wrong."""
        return None if isinstance(self.value, UsageError) else self.value


Settings = Mapping[str, Given]
"""By name, one for each global setting that is no secret."""


def findings(settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Program and settings. What is optional and not set is left out."""
    version = platform.python_version()
    yield fine("sealpipe", f"{__version__}, Python {version}, {platform.system()} {platform.machine()}, {sys.prefix}")
    path = config_path(environ)
    yield fine("config file", "there is none" if path is None else str(path))
    for setting in GLOBAL:
        if setting.name in settings:
            yield from _setting(setting.name, settings[setting.name], environ, setting.variable())
    for name, near in unknown_variables(environ):
        yield doubtful(f"variable {name}", "it means nothing", f"did you mean {near}?" if near else "unset it")


def _setting(name: str, given: Given, environ: Mapping[str, str], variable: str) -> Iterator[Finding]:
    check = f"setting {name}"
    if isinstance(given.value, UsageError):
        yield failed(check, given.value)
    elif given.value is not None:
        shown = f"{given.value:g} s" if isinstance(given.value, float) else given.value
        yield fine(check, f"{shown} ({given.origin})")
    elif name in _REQUIRED:
        empty = environ.get(variable) == ""
        what = f"{variable} is set but empty" if empty else f"{variable} is not set"
        yield failed(check, SettingError(what, remedy=_REQUIRED[name]))
