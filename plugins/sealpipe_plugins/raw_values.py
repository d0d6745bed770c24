"""What sources have in common whose values refer to others.

`raw=1`, and a remark on hidden values.
"""

from __future__ import annotations

from collections.abc import Mapping

from sealpipe.plugin import Locator, ReferenceValueError, UnsupportedError


def is_raw(locator: Locator) -> bool:
    """Return the parameter raw=. Raises ReferenceValueError."""
    raw = locator.param("raw", "0")
    if raw not in ("0", "1"):
        raise ReferenceValueError(
            f"{locator}: raw= is 0 or 1", remedy="leave it out, to replace references by values"
        )
    return raw == "1"


def hidden_remark(count: int, remedy: str) -> str:
    """Return the remark on values that are hidden from a token; empty if none is."""
    secrets = "1 secret is" if count == 1 else f"{count} secrets are"
    return f"{secrets} hidden from this token: {remedy}" if count else ""


def refuse_references(values: Mapping[str, str], system: str, locator: Locator) -> None:
    """Refuse a value that the system would expand: its author could read other secrets.

    Raises UnsupportedError.
    """
    for key, value in values.items():
        if "${" in value:
            raise UnsupportedError(
                (
                    f"the value for {key} of {locator} contains ${{, which {system} replaces "
                    "by other secrets"
                ),
                remedy="ask for it as base64, or store it elsewhere",
            )
