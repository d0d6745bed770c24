"""A response of a system's API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from sealpipe.plugin import parse_retry_after


class Reply(NamedTuple):
    """A response of `system`. `writes` means that the request must not be repeated."""

    system: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    writes: bool

    @property
    def json(self) -> Any:
        """The decoded JSON; None if the body is not JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    def member(self, name: str) -> Any:
        """Return a member of the JSON object, or None."""
        decoded = self.json
        return decoded.get(name) if isinstance(decoded, dict) else None

    @property
    def retry_after(self) -> float | None:
        """Return the seconds to wait, from Retry-After (seconds or a date)."""
        return parse_retry_after(self.headers.get("retry-after"))
