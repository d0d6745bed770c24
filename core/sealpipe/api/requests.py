"""The request endpoints as operations (specification: POST/GET/DELETE /v1/requests; gaps: their bodies)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from sealpipe.api import Operation, Resend, Response, encode_members, responses
from sealpipe.errors import ProtocolError, PublicKeyMismatchError, UsageError
from sealpipe.secret import Secret
from sealpipe.values import format_time
from sealpipe.wire.encoding import encode_base64url
from sealpipe.wire.link import called

if TYPE_CHECKING:
    from sealpipe.api.account import Page

T = TypeVar("T")

SUBMISSIONS_LIMIT = 64 * 1024 * 1024
"""Bytes that the answer with all submissions may have."""
MAX_SUBMISSIONS = 200_000
"""Submissions that it may have: more sealed ones than fit into it. Of empty rows there could be millions."""

OUTCOMES = ("expired", "deleted")


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


def build_body(
    *,
    title: str,
    public_key: bytes,
    fields: Sequence[tuple[str, str]],
    description: str | None = None,
    expires_at: datetime | None = None,
    max_submissions: int | None = None,
    views: int | None = None,
    passcode: Secret | None = None,
    requires_login: bool | None = None,
    requires_mfa: bool | None = None,
    restricted_domains: Sequence[str] | None = None,
    ip_whitelist: Sequence[str] | None = None,
    organization_id: str | None = None,
) -> bytes:
    """The create body as bytes. `fields` are pairs of prompt and type. UsageError where there is none.

    The passcode is part of it, in clear: it gates a form that the service renders (gaps: `POST /v1/requests` body).
    """
    if not fields:
        # The service would take it, and show whoever opens the link an error page.
        raise UsageError("the request has no prompts", remedy="give it at least one prompt and its type")
    return encode_members(
        {
            "title": title,
            "public_key": encode_base64url(public_key),
            "fields": [{"item": item, "type": kind} for item, kind in fields],
            "description": description,
            "expired_at": None if expires_at is None else format_time(expires_at),
            "max_submission": max_submissions,
            "access_counts_left": views,
            "passcode": None if passcode is None else passcode.reveal(),
            "requires_login": requires_login,
            "requires_mfa": requires_mfa,
            "restricted_domain": None if restricted_domains is None else list(restricted_domains),
            "ip_whitelist": None if ip_whitelist is None else list(ip_whitelist),
            "organization_id": organization_id,
        }
    )


def create(body: bytes, idempotency_key: str, public_key: bytes) -> Operation[CreatedRequest]:
    """POST /v1/requests. Repeatable under the same key with the same bytes; a replay is a success.

    An answer that tells another public key than the one sent is refused: the key in hand could open nothing.
    """
    return Operation(
        name="create the request",
        method="POST",
        path="/requests",
        resend=Resend.KEYED,
        decode=lambda response: _decode_created(response, encode_base64url(public_key)),
        body=body,
        headers={"idempotency-key": idempotency_key, "content-type": "application/json"},
    )


def list_page(page: int = 1, limit: int = 25, status: Literal["expired"] | None = None) -> Operation[Page[RequestInfo]]:
    """GET /v1/requests: the active ones, newest first; with `status="expired"` what has ended (gaps: both lists)."""
    query = {"page": str(page), "limit": str(limit)}
    return Operation(
        name="list the requests",
        method="GET",
        path="/requests",
        resend=Resend.READ,
        decode=lambda response: responses.read_page(responses.parse_object(response), "requests", _decode_item),
        query=query if status is None else {**query, "status": status},
    )


def get(short_code: str) -> Operation[RequestInfo]:
    """GET /v1/requests/{shortCode}: changes nothing. One that has ended answers, too, without time and key."""
    path = f"/requests/{called(short_code)}"
    return Operation("read the request", "GET", path, Resend.READ, _decode_about(short_code, _decode_info))


def list_submissions(short_code: str) -> Operation[Submissions]:
    """GET /v1/requests/{shortCode}/submissions: all of them in one answer of up to 64 MiB."""
    path = f"/requests/{called(short_code)}/submissions"
    return Operation("read the submissions", "GET", path, Resend.READ, _decode_submissions, limit=SUBMISSIONS_LIMIT)


def delete(short_code: str) -> Operation[DeletedRequest]:
    """DELETE /v1/requests/{shortCode}. Sent once, ever: the second one destroys the submissions for good.

    On a connection of its own: a kept one could be half closed, and then nobody would know whether it arrived.
    """
    path = f"/requests/{called(short_code)}"
    decode = _decode_about(short_code, _decode_deleted)
    return Operation("expire the request", "DELETE", path, Resend.NEVER, decode, own_connection=True)


def _decode_created(response: Response, sent_key: str) -> CreatedRequest:
    if response.status not in (200, 201):
        raise ProtocolError(f"the service answered a create with {response.status}", status=response.status)
    members = responses.parse_object(response)
    public_key = responses.read_text(members, "public_key")
    # A missing echo is let pass: a key stands for one body, byte for byte, and so for one public key (105).
    if public_key is not None and public_key != sent_key:
        mismatch = PublicKeyMismatchError(
            "the service shows the request with another public key than the one sent: submissions to that key could "
            "not be decrypted",
            status=response.status,
        )
        mismatch.short_code = responses.read_short_code(members)
        raise mismatch
    return CreatedRequest(
        responses.read_short_code(members),
        responses.read_time(members, "expired_at"),
        public_key,
        replayed=response.status == 200,
        extra=responses.select_unknown(members, "short_code", "expired_at", "public_key"),
        expiry_known="expired_at" in members,
    )


def _decode_item(members: Mapping[str, Any], answered_at: datetime | None = None) -> RequestInfo:
    return RequestInfo(
        responses.read_short_code(members),
        responses.read_time(members, "expired_at"),
        responses.read_text(members, "public_key"),
        answered_at,
        responses.select_unknown(members, "short_code", "expired_at", "public_key"),
    )


def _decode_about(
    short_code: str, read: Callable[[Mapping[str, Any], Mapping[str, str]], T]
) -> Callable[[Response], T]:
    """Decode an answer that must be about the request that was asked for: what follows may depend on it."""

    def decode(response: Response) -> T:
        members = responses.parse_object(response)
        if responses.read_short_code(members) != short_code:
            raise ProtocolError("the response is about another request")
        return read(members, response.headers)

    return decode


def _decode_info(members: Mapping[str, Any], headers: Mapping[str, str]) -> RequestInfo:
    return _decode_item(members, _read_clock(headers))


def _read_clock(headers: Mapping[str, str]) -> datetime | None:
    """The service's time by its `Date` header."""
    try:
        server_time = parsedate_to_datetime(headers.get("date", ""))
        return server_time.astimezone(UTC) if server_time.tzinfo else server_time.replace(tzinfo=UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _decode_submissions(response: Response) -> Submissions:
    members = responses.parse_object(response)
    if not isinstance(members.get("submissions"), list):
        raise ProtocolError("the service's answer has no array of submissions")
    if len(members["submissions"]) > MAX_SUBMISSIONS:
        raise ProtocolError(f"the service's answer has more than {MAX_SUBMISSIONS} submissions")
    items = tuple(map(_decode_submission, responses.read_rows(members, "submissions")))
    count = responses.read_int(members, "count")
    skipped = responses.read_int(members, "skipped_not_end_to_end_encrypted")
    if count is not None and count > len(items) + (skipped or 0):
        # It is all in one answer; one that is cut must not pass for all there is.
        raise ProtocolError(f"the service counts {count} submissions, but returned {len(items)}")
    known = ("submissions", "count", "skipped_not_end_to_end_encrypted")
    return Submissions(items, count, skipped, responses.select_unknown(members, *known))


def _decode_submission(row: Mapping[str, Any]) -> Submission:
    return Submission(
        responses.read_text(row, "short_code"),
        responses.read_text(row, "data"),
        responses.read_time(row, "created_at"),
        responses.read_text(row, "encryption_type"),
        responses.select_unknown(row, "short_code", "data", "created_at", "encryption_type"),
    )


def _decode_deleted(members: Mapping[str, Any], _: Mapping[str, str]) -> DeletedRequest:
    outcome = responses.read_text(members, "outcome")
    if outcome not in OUTCOMES:
        raise ProtocolError("the response to the DELETE does not say whether the request was expired or deleted")
    return DeletedRequest(
        responses.read_short_code(members), outcome, responses.select_unknown(members, "short_code", "outcome")
    )
