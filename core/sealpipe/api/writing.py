"""Writing a body: exact, and the same bytes for the same members."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sealpipe.errors import UsageError


def compact(members: Mapping[str, object]) -> bytes:
    """The members that are not None, as a browser's JSON.stringify writes them. UsageError for half a character."""
    given = {name: value for name, value in members.items() if value is not None}
    try:
        return json.dumps(given, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError:
        pass
    raise UsageError(
        "a title, description or other text in clear holds half a character (a lone surrogate)",
        remedy="give it as UTF-8 text",
    )
