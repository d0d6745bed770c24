"""page and limit of the lists: corrected, never rejected (specification: GET /v1/requests)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

DEFAULT_LIMIT = 25
MAX_LIMIT = 100

_POSITIVE = re.compile(r"0*([1-9][0-9]*)", re.ASCII)

_LARGEST = 10**15 - 1
"""Beyond every page there could be, and no arithmetic on it leaves SQLite's integers: what is larger counts as this."""


@dataclass(frozen=True)
class Page:
    """Which page was asked for, as corrected."""

    page: int
    limit: int

    @property
    def offset(self) -> int:
        """How many items come before it."""
        return (self.page - 1) * self.limit

    def figures(self, total: int) -> dict[str, int]:
        """The pagination object. No items are no pages."""
        return {
            "page": self.page,
            "limit": self.limit,
            "total_pages": -(-total // self.limit),
            "total": total,
        }


def read_limit(query: Mapping[str, str], default: int, largest: int) -> int:
    """How many a query asks for, as corrected."""
    return min(_positive(query.get("limit"), default), largest)


def read_page(query: Mapping[str, str]) -> Page:
    """The page that a query asks for."""
    return Page(
        page=_positive(query.get("page"), 1),
        limit=read_limit(query, DEFAULT_LIMIT, MAX_LIMIT),
    )


def _positive(text: str | None, fallback: int) -> int:
    found = _POSITIVE.fullmatch(text or "")
    if found is None:
        return fallback
    digits = found[1]
    return int(digits) if len(digits) <= len(str(_LARGEST)) else _LARGEST
