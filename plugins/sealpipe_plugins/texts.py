"""Values that become environment variables of somebody's jobs: names by the system's rule, and text only."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sealpipe.plugin import Locator, ReferenceValueError, Stored, UnsupportedError


def texts(locator: Locator, fields: Sequence[Stored], name: re.Pattern[str], rule: str) -> dict[str, str]:
    """The values by their names; nothing of a value is in an error. `rule` says for people what `name` matches.

    Raises ReferenceValueError for a name that is none, UnsupportedError for a value that no variable can hold.
    """
    found: dict[str, str] = {}
    for key, value in fields:
        if not key:
            raise ReferenceValueError(
                f"{locator} names nothing to store it under", remedy=f"name it: {locator}#PASSWORD=PROMPT"
            )
        if not name.fullmatch(key):
            raise ReferenceValueError(f"{locator}: {key!a} is no name for it", remedy=rule)
        found[key] = _text(value.reveal_bytes(), f"the value for {key} of {locator}")
    return found


def _text(value: bytes, what: str) -> str:
    if b"\0" in value:
        raise UnsupportedError(f"{what} has a NUL character, which no variable of a job can hold", remedy=_ELSEWHERE)
    try:
        return value.decode()
    except UnicodeDecodeError:
        pass
    raise UnsupportedError(f"{what} is not UTF-8 text", remedy=_ELSEWHERE)


_ELSEWHERE = "ask for it as base64, or store it in a file or a vault"
