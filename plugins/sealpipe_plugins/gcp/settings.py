"""The settings of Google Secret Manager, and the names of its secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final

from pydantic import PositiveFloat

from sealpipe.plugin import Locator, NotConfiguredError, ReferenceValueError
from sealpipe.plugin.settings import PluginSettings


class GcpSettings(PluginSettings):
    """The project of references that name none, and the login.

    With `workload_identity_provider`
    (projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/NAME), the login is the
    CI's OIDC token for `audience` (the provider's own one), exchanged for a token of the provider
    and, if set, of the `service_account`. Otherwise it is the `credentials_file`; the default store
    looks where Google's own tools do if there is none. `timeout` is in seconds, for each step.
    """

    project: str | None = None
    credentials_file: Path | None = None
    workload_identity_provider: str | None = None
    service_account: str | None = None
    audience: str | None = None
    url: str = "https://secretmanager.googleapis.com"
    timeout: PositiveFloat = 30.0

    own_variables: ClassVar[Mapping[str, str]] = {
        "project": "GOOGLE_CLOUD_PROJECT",
        "credentials_file": "GOOGLE_APPLICATION_CREDENTIALS",
    }


_PROJECT: Final = r"[a-z0-9][a-z0-9.:-]{0,61}"
"""An id, which may begin with a domain, or a number."""
_NAME: Final = r"[A-Za-z0-9_-]{1,255}"
_REFERENCE: Final = re.compile(rf"(?:projects/({_PROJECT})/secrets/|({_PROJECT})/)?({_NAME})")
_VERSION: Final = re.compile(r"[A-Za-z0-9_-]{1,63}")


def parse_secret(locator: Locator, settings: GcpSettings, store: str) -> tuple[str, str]:
    """Return project and name of a secret.

    Raises ReferenceValueError, and NotConfiguredError without a project.
    """
    match = _REFERENCE.fullmatch(locator.body)
    if match is None:
        raise ReferenceValueError(
            f"{locator} is not a valid name of a secret",
            remedy=(
                f"write {locator.name}:PROJECT/SECRET; a secret has at most 255 letters, "
                "digits, - and _"
            ),
        )
    project = match[1] or match[2] or settings.project
    if project is None:
        raise NotConfiguredError(
            f"{locator} names no project, and {store} has none",
            remedy=f"write {locator.name}:PROJECT/{match[3]}, or set the setting project",
        )
    if re.fullmatch(_PROJECT, project) is None:
        raise NotConfiguredError(
            f"the project of {store} is not a project's id", remedy="check the setting project"
        )
    return project, match[3]


def parse_version(locator: Locator) -> str:
    """Return the version of a reference: a number or an alias; `latest` if it names none."""
    version = locator.param("version", "latest") or ""
    if _VERSION.fullmatch(version) is None:
        raise ReferenceValueError(
            f"{locator}: version= must be a number or an alias",
            remedy="leave it out for the newest version",
        )
    return version
