"""What a reference to Vault means, for reading and for writing."""

from __future__ import annotations

import re
from typing import NamedTuple

from sealpipe.plugin import Locator, ReferenceValueError


class Place(NamedTuple):
    """Something in Vault: `where` is its reference, for errors, and `path` begins with its mount.

    `mount` None: that is to be found. `version` as text, a number from 1; None for the newest.
    """

    where: str
    path: str
    namespace: str
    mount: str | None = None
    version: str | None = None


def parse_place(locator: Locator, namespace: str) -> Place:
    """What a locator means; `namespace` is that of the settings. ReferenceValueError where it means nothing."""
    mount, version = locator.param("mount"), locator.param("version")
    path = _path(locator.body, locator, "the path")
    if mount is None and "/" not in path:
        raise ReferenceValueError(
            f"{locator} has no path in an engine", remedy="write vault:secret/app/db, the mount first"
        )
    if version is not None and not re.fullmatch(r"[1-9][0-9]{0,8}", version):
        raise ReferenceValueError(
            f"{locator}: a version is a number from 1", remedy="leave version= out for the newest"
        )
    if mount is not None:
        mount = _path(mount, locator, "mount=")
        path = f"{mount}/{path}"
    given = locator.param("namespace")
    inside = namespace if given is None else given.strip("/")
    return Place(str(locator), path, inside if inside != "root" else "", mount, version)


def _path(text: str, locator: Locator, what: str) -> str:
    stripped = text.strip("/")
    if not stripped or any(part in ("", ".", "..") for part in stripped.split("/")):
        raise ReferenceValueError(
            f"{locator}: {what} is empty, or has an empty part, . or ..", remedy="write MOUNT/PATH"
        )
    return stripped
