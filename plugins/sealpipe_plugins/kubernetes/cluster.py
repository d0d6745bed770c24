"""A cluster and the credentials for it, and how their files are read."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from sealpipe.plugin import NotConfiguredError, Secret, read_file

_FILE_LIMIT: Final = 4 * 1024 * 1024
"""Maximum bytes of a kubeconfig, and of every other file for cluster access."""


class Access(NamedTuple):
    """A cluster and the credentials for it.

    `authorities` is PEM text (None: the system's), `certificate` the client's certificate and key
    as PEM. A token file is read again for each call, because a pod's token is replaced every hour.
    """

    server: str
    authorities: str | None = None
    token: Secret | None = None
    token_file: Path | None = None
    certificate: tuple[Secret, Secret] | None = None
    namespace: str | None = None


def read_text(path: Path, what: str) -> Secret:
    """Read a text file of at most 4 MiB. Raises NotConfiguredError."""
    try:
        return Secret(read_file(path.expanduser(), _FILE_LIMIT).decode("utf-8"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
    raise NotConfiguredError(
        f"{what} {path} cannot be read: {reason}", remedy="check the path and its permissions"
    )
