"""What the service tells, as values. Members that we do not know are kept in `extra`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ShareInfo:
    """A share's metadata (specification: Share metadata, Share list item).

    `expires_at` is None for a share without an end; where `expiry_known` is False, the service did not say.
    """

    short_code: str
    expires_at: datetime | None
    extra: Mapping[str, Any] = field(default_factory=dict)
    expiry_known: bool = True


@dataclass(frozen=True, slots=True)
class CreatedRequest:
    """A secure request as its creation answered (gaps: `POST /v1/requests` response).

    `public_key` is base64url of 65 bytes, the one that was sent; None where the service did not repeat it.
    `replayed` tells that an earlier sending of the same bytes had created it. Where `expiry_known` is False, the
    service did not say when it ends.
    """

    short_code: str
    expires_at: datetime | None
    public_key: str | None
    replayed: bool
    extra: Mapping[str, Any] = field(default_factory=dict)
    expiry_known: bool = True


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """A secure request's metadata (specification: Secure request metadata).

    Both `expires_at` and `public_key` (base64url of 65 bytes) are None once it has ended or was removed.
    `answered_at` is the service's clock when it told (HTTP `Date`), None where it did not say, and in lists.
    """

    short_code: str
    expires_at: datetime | None
    public_key: str | None
    answered_at: datetime | None = field(default=None, compare=False)
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Submission:
    """What somebody sent to a request. `data` is standard base64 of a sealed box: ciphertext (gaps: sealed submission).

    None where the service did not say. Nothing in it was checked by anybody, and its sender is not known.
    """

    short_code: str | None
    data: str | None = field(repr=False)
    created_at: datetime | None = None
    encryption_type: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def identity(self) -> tuple[str | None, str | None]:
        """What tells one submission from another: its short code and its ciphertext."""
        return self.short_code, self.data


@dataclass(frozen=True, slots=True)
class Submissions:
    """Everything that was sent to a request. `skipped` were not end-to-end encrypted, and are not handed out."""

    items: tuple[Submission, ...]
    count: int | None
    skipped: int | None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeletedRequest:
    """What a DELETE did to a request: `expired` (it was active) or `deleted` (it was over: gone, submissions too)."""

    short_code: str
    outcome: str
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
