"""What the service tells, as values. Members that we do not know are kept in `extra`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CreatedShare:
    """A share as its creation answered (specification: Share create response).

    `custody` is `none`, `stored` or `failed`, None where the service did not say. `replayed` tells that an
    earlier sending of the same bytes had created it.
    """

    short_code: str
    expires_at: datetime | None
    custody: str | None
    replayed: bool
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShareInfo:
    """A share's metadata (specification: Share metadata, Share list item)."""

    short_code: str
    expires_at: datetime | None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pagination:
    """Where a page stands (specification: Pagination object); None where the service did not say."""

    page: int | None = None
    limit: int | None = None
    total_pages: int | None = None
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list, newest first."""

    items: tuple[T, ...]
    pagination: Pagination
