"""The secrets of one folder, which one request reads: names, values and metadata."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from sealpipe.plugin import AccessDeniedError, Locator, ReferenceValueError, SecretNotFoundError
from sealpipe_plugins.http_errors import Refusals
from sealpipe_plugins.infisical.api import Infisical, unexpected_response

SECRETS: Final = "/api/v3/secrets/raw"
"""The endpoints of Infisical's own SDK: they take a project's slug, and are on every self-hosted
version.
"""

_PART: Final = r"[A-Za-z0-9_-]{1,99}"
_BODY: Final = re.compile(rf"({_PART})/({_PART})((?:/{_PART})*)/?")
_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{24}")


class Folder(NamedTuple):
    """A folder of an environment of a project, which is named by its id or its slug."""

    project: str
    environment: str
    path: str

    def __str__(self) -> str:
        return f"{self.project}/{self.environment}{self.path.rstrip('/')}"

    def members(self, slug: str) -> dict[str, str]:
        """What a request names it by; `slug` is the request's name for a project's slug."""
        project = "workspaceId" if _ID.fullmatch(self.project) else slug
        return {project: self.project, "environment": self.environment, "secretPath": self.path}


class FolderSecret(NamedTuple):
    """A secret. `value` is None if it is hidden from the identity."""

    value: str | None
    metadata: tuple[Mapping[str, Any], ...]

    def __repr__(self) -> str:
        return "FolderSecret(...)"


def parse_folder(locator: Locator) -> Folder:
    """Parse a reference. Raises ReferenceValueError."""
    match = _BODY.fullmatch(locator.body)
    if match is None:
        raise ReferenceValueError(
            f"{locator} does not name a project and an environment",
            remedy=(
                "write infisical:PROJECT/ENVIRONMENT/path/to/folder#NAME, the project by its "
                "id or slug"
            ),
        )
    return Folder(match[1], match[2], match[3] or "/")


def read_folder(
    infisical: Infisical, folder: Folder, *, is_expanded: bool
) -> dict[str, FolderSecret]:
    """Read the secrets of a folder.

    With `is_expanded`, also imported ones, and references to others are replaced.
    """
    flag = "true" if is_expanded else "false"
    params = {
        **folder.members("workspaceSlug"),
        "expandSecretReferences": flag,
        "include_imports": flag,
    }
    found = infisical.request(
        "GET", SECRETS, params, refusals=explain_refusals(folder, "read")
    ).json
    if not isinstance(found, dict) or not _is_list_of_objects(found.get("imports") or []):
        raise unexpected_response()
    secrets: dict[str, FolderSecret] = {}
    # Of two imports the later one counts; the folder's own secrets count most.
    for part in (
        *(each.get("secrets") for each in found.get("imports") or []),
        found.get("secrets"),
    ):
        if not isinstance(part, list):
            raise unexpected_response()
        secrets.update(_parse_secret(each) for each in part)
    return secrets


def secret_path(name: str) -> str:
    """Return the path of one secret."""
    return f"{SECRETS}/{quote(name, safe='')}"


def explain_refusals(folder: Folder, do: str) -> Refusals:
    """Return what a refusal means when a folder is to be read or written (`do`)."""
    return {
        403: (
            AccessDeniedError,
            f"does not let this identity {do} {folder}",
            f"add the identity to the project, with a role that may {do} secrets there",
        ),
        404: (
            SecretNotFoundError,
            f"has no {folder}, or hides it from this identity",
            "check the project's id or slug, the environment's slug and the folder",
        ),
    }


def _parse_secret(secret: Any) -> tuple[str, FolderSecret]:
    if not isinstance(secret, dict):
        raise unexpected_response()
    key, value, metadata = (
        secret.get("secretKey"),
        secret.get("secretValue"),
        secret.get("secretMetadata") or [],
    )
    if secret.get("secretValueHidden") is True:
        value = None
    elif not isinstance(value, str):
        raise unexpected_response()
    if (
        not isinstance(key, str)
        or not isinstance(metadata, list)
        or not all(isinstance(each, dict) for each in metadata)
    ):
        raise unexpected_response()
    return key, FolderSecret(value, tuple(metadata))


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)
