"""The secrets of one config, which one request reads: names, values and notes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from sealpipe.plugin import (
    AccessDeniedError,
    BackendAuthError,
    Locator,
    ReferenceValueError,
    SecretNotFoundError,
)
from sealpipe_plugins.doppler.api import Doppler, unexpected_response
from sealpipe_plugins.http_errors import Refusals

SECRETS: Final = "/v3/configs/config/secrets"

MANAGED: Final = ("DOPPLER_PROJECT", "DOPPLER_ENVIRONMENT", "DOPPLER_CONFIG")
"""What Doppler adds to every config: it says which config was read."""

_BODY: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.-]{0,99})/([A-Za-z0-9][A-Za-z0-9_.-]{0,99})")
_WRITE_PATH: Final = "write doppler:PROJECT/CONFIG#NAME"


class ConfigName(NamedTuple):
    """A config, by its names; both are empty for the one that a service token belongs to.

    `text` is the reference.
    """

    project: str
    config: str
    text: str

    @property
    def members(self) -> dict[str, str]:
        """What a request names it by."""
        return {"project": self.project, "config": self.config} if self.project else {}


class ConfigSecret(NamedTuple):
    """A secret.

    `raw` has references to other secrets, `computed` their values; None if hidden from the token.
    """

    raw: str | None
    computed: str | None
    note: str

    def __repr__(self) -> str:
        return "ConfigSecret(...)"


class ConfigContent(NamedTuple):
    """The secrets of a config by name, and the names of the config that was read."""

    secrets: Mapping[str, ConfigSecret]
    project: str
    config: str


def parse_config(locator: Locator, *, has_service_token: bool) -> ConfigName:
    """Parse a reference. Raises ReferenceValueError."""
    match = _BODY.fullmatch(locator.body)
    if match is not None:
        return ConfigName(match[1], match[2], str(locator))
    if locator.body:
        raise ReferenceValueError(
            f"{locator} does not name a project and a config", remedy=_WRITE_PATH
        )
    if not has_service_token:
        raise ReferenceValueError(
            f"{locator} names no config",
            remedy=f"{_WRITE_PATH}; only a service token has a config of its own",
        )
    return ConfigName("", "", str(locator))


def read_config(doppler: Doppler, name: ConfigName) -> ConfigContent:
    """Read all secrets of a config.

    Raises AccessDeniedError if the token belongs to another one.
    """
    params = {"project": name.project, "config": name.config}
    found = doppler.request("GET", SECRETS, params, refusals=explain_refusals(name, "read")).member(
        "secrets"
    )
    if not isinstance(found, dict):
        raise unexpected_response()
    secrets = {key: _parse_secret(each) for key, each in found.items()}
    project, _, config = (secrets[key].computed or "" if key in secrets else "" for key in MANAGED)
    if (
        doppler.has_service_token
        and name.project
        and (project, config) != (name.project, name.config)
    ):
        raise AccessDeniedError(
            f"{name.text}: the service token is another config's",
            remedy="use a service token of this config, or the token of a service account",
        )
    return ConfigContent(
        {key: each for key, each in secrets.items() if key not in MANAGED}, project, config
    )


def explain_refusals(name: ConfigName, do: str) -> Refusals:
    """Return what a refusal means when a config is to be read or written (`do`)."""
    what = f"{name.project}/{name.config}" if name.project else "its config"
    return {
        401: (
            BackendAuthError,
            "refused the token",
            "create another one: it is wrong, expired or revoked",
        ),
        403: (
            AccessDeniedError,
            f"does not let this token {do} {what}",
            f"give the service account, or the service token, access to {do} this config",
        ),
        404: (
            SecretNotFoundError,
            f"has no {what}, or hides it from this token",
            "check project and config, and the projects that the token may see",
        ),
    }


def _parse_secret(value: Any) -> ConfigSecret:
    raw, computed, note = (
        (value.get(each) for each in ("raw", "computed", "note"))
        if isinstance(value, dict)
        else _BAD
    )
    if (
        isinstance(raw, str | None)
        and isinstance(computed, str | None)
        and isinstance(note, str | None)
    ):
        return ConfigSecret(raw, computed, note or "")
    raise unexpected_response()


_BAD: Final = (0, 0, 0)
