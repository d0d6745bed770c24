"""Which version of the tables this program knows."""

from __future__ import annotations

from .access import SchemaError

VERSION = "0001"
"""The revision that the newest of `migrations` makes. Versions are in order as text."""
UNKNOWN = "0000"
"""What a version is called that did not say which it is."""
TABLE = "service_version"


def refuse(found: str | None, where: str) -> SchemaError | None:
    """Return why tables of a version (None: no tables) cannot be used, if they cannot."""
    if found is None:
        return SchemaError(
            f"{where} has no tables of the service",
            "check its address; `sealpipe server init` makes a new service there",
        )
    if found < VERSION:
        return SchemaError(
            f"{where} has the tables of version {found}, and this program needs {VERSION}",
            "run `sealpipe server database upgrade`",
        )
    if found > VERSION:
        return SchemaError(
            f"{where} has the tables of version {found}, and this program knows only {VERSION}",
            "install the sealpipe that has upgraded it",
        )
    return None
