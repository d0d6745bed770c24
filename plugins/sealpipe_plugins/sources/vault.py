"""`vault:MOUNT/PATH#KEY`: HashiCorp Vault and OpenBao."""

from __future__ import annotations

import re

from sealpipe.plugin import BadReference, Context, Document, Health, Locator, Source
from sealpipe_plugins.backends.vault import Place, Vault
from sealpipe_plugins.backends.vault_settings import VaultSettings


class VaultSource(Source):
    """Key-value engines of both versions, and every other path that can be read."""

    concurrency = 4  # more slows down a Vault on this machine, and gains little at one far away

    def __init__(self, settings: VaultSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._vault = Vault(settings, context)

    def fetch(self, locator: Locator) -> Document:
        """The keys of a secret, or all that another engine answers; with its lease's end where it has one."""
        content, lease = self._vault.read(place(locator, self._vault.entry.namespace))
        if lease is None:
            return Document(content)
        return Document(content, expires_at=lease.ends, remark=lease.remark)

    def check(self) -> Health:
        """Whether Vault answers and takes our token, and what this may do."""
        version, token = self._vault.health()
        policies = ", ".join(str(each) for each in token.get("policies", ()))
        lives = int(token.get("ttl", 0))
        told = [f"Vault {version} at {self._vault.host}", f"policies {policies}" if policies else ""]
        told += [f"the token lives for {lives} s"] if lives else []
        return Health(ok=True, detail=", ".join(each for each in told if each))

    def close(self) -> None:
        """Revoke what we logged in for, and hang up."""
        self._vault.entry.close()


def place(locator: Locator, namespace: str) -> Place:
    """What a locator means. BadReference where it means nothing."""
    mount, version = locator.param("mount"), locator.param("version")
    path = _path(locator.body, locator, "the path")
    if mount is None and "/" not in path:
        raise BadReference(f"{locator} has no path in an engine", remedy="write vault:secret/app/db, the mount first")
    if version is not None and not re.fullmatch(r"[1-9][0-9]{0,8}", version):
        raise BadReference(f"{locator}: a version is a number from 1", remedy="leave version= out for the newest")
    if mount is not None:
        mount = _path(mount, locator, "mount=")
        path = f"{mount}/{path}"
    given = locator.param("namespace")
    inside = namespace if given is None else given.strip("/")
    return Place(str(locator), path, inside if inside != "root" else "", mount, version)


def _path(text: str, locator: Locator, what: str) -> str:
    stripped = text.strip("/")
    if not stripped or any(part in ("", ".", "..") for part in stripped.split("/")):
        raise BadReference(f"{locator}: {what} is empty, or has an empty part, . or ..", remedy="write MOUNT/PATH")
    return stripped
