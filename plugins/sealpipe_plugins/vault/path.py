"""Parse a reference to Vault."""

from __future__ import annotations

import re
from typing import NamedTuple

from sealpipe.plugin import Locator, ReferenceValueError


class VaultPath(NamedTuple):
    """A path in Vault: `reference` is for errors, and `path` begins with its mount.

    `mount` is None if it must be looked up. `version` is a number from 1 as text; None for the
    newest.
    """

    reference: str
    path: str
    namespace: str
    mount: str | None = None
    version: str | None = None


def parse_path(locator: Locator, namespace: str) -> VaultPath:
    """Parse a locator; `namespace` comes from the settings. Raises ReferenceValueError."""
    mount, version = locator.param("mount"), locator.param("version")
    path = _check_path(locator.body, locator, "the path")
    if mount is None and "/" not in path:
        raise ReferenceValueError(
            f"{locator} has no mount", remedy="write vault:secret/app/db, the mount first"
        )
    if version is not None and not re.fullmatch(r"[1-9][0-9]{0,8}", version):
        raise ReferenceValueError(
            f"{locator}: a version is a number from 1", remedy="leave version= out for the newest"
        )
    if mount is not None:
        mount = _check_path(mount, locator, "mount=")
        path = f"{mount}/{path}"
    namespace_given = locator.param("namespace")
    effective_namespace = namespace if namespace_given is None else namespace_given.strip("/")
    return VaultPath(
        str(locator),
        path,
        effective_namespace if effective_namespace != "root" else "",
        mount,
        version,
    )


def _check_path(text: str, locator: Locator, what: str) -> str:
    stripped = text.strip("/")
    if not stripped or any(part in ("", ".", "..") for part in stripped.split("/")):
        raise ReferenceValueError(
            f"{locator}: {what} is empty, or has an empty part, . or ..", remedy="write MOUNT/PATH"
        )
    return stripped
