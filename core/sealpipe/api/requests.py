"""The request endpoints as operations (specification: POST/GET/DELETE /v1/requests; gaps: their bodies)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal, TypeVar

from sealpipe.api import Operation, Resend, Response, codec
from sealpipe.api.models import CreatedRequest, DeletedRequest, Page, RequestInfo, Submission, Submissions
from sealpipe.errors import ProtocolError, PublicKeyMismatchError, UsageError
from sealpipe.secret import Secret
from sealpipe.values import format_time
from sealpipe.wire.encoding import encode_base64url
from sealpipe.wire.link import called

T = TypeVar("T")

SUBMISSIONS_LIMIT = 64 * 1024 * 1024
"""Bytes that the answer with all submissions may have."""
MAX_SUBMISSIONS = 200_000
"""Submissions that it may have: more sealed ones than fit into it. Of empty rows there could be millions."""

OUTCOMES = ("expired", "deleted")


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
    return codec.dump(
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
        decode=lambda answer: _decode_created(answer, encode_base64url(public_key)),
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
        decode=lambda answer: codec.read_page(codec.parse_object(answer), "requests", _decode_item),
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


def _decode_created(answer: Response, sent_key: str) -> CreatedRequest:
    if answer.status not in (200, 201):
        raise ProtocolError(f"the service answered a create with {answer.status}", status=answer.status)
    members = codec.parse_object(answer)
    public_key = codec.read_text(members, "public_key")
    # A missing echo is let pass: a key stands for one body, byte for byte, and so for one public key (105).
    if public_key is not None and public_key != sent_key:
        mismatch = PublicKeyMismatchError(
            "the service shows the request with another public key than the one sent: submissions to that key could "
            "not be decrypted",
            status=answer.status,
        )
        mismatch.short_code = codec.read_short_code(members)
        raise mismatch
    return CreatedRequest(
        codec.read_short_code(members),
        codec.read_time(members, "expired_at"),
        public_key,
        replayed=answer.status == 200,
        extra=codec.select_unknown(members, "short_code", "expired_at", "public_key"),
        expiry_known="expired_at" in members,
    )


def _decode_item(members: Mapping[str, Any], answered_at: datetime | None = None) -> RequestInfo:
    return RequestInfo(
        codec.read_short_code(members),
        codec.read_time(members, "expired_at"),
        codec.read_text(members, "public_key"),
        answered_at,
        codec.select_unknown(members, "short_code", "expired_at", "public_key"),
    )


def _decode_about(
    short_code: str, read: Callable[[Mapping[str, Any], Mapping[str, str]], T]
) -> Callable[[Response], T]:
    """Decode an answer that must be about the request that was asked for: what follows may depend on it."""

    def decode(answer: Response) -> T:
        members = codec.parse_object(answer)
        if codec.read_short_code(members) != short_code:
            raise ProtocolError("the response is about another request")
        return read(members, answer.headers)

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


def _decode_submissions(answer: Response) -> Submissions:
    members = codec.parse_object(answer)
    if not isinstance(members.get("submissions"), list):
        raise ProtocolError("the service's answer has no array of submissions")
    if len(members["submissions"]) > MAX_SUBMISSIONS:
        raise ProtocolError(f"the service's answer has more than {MAX_SUBMISSIONS} submissions")
    items = tuple(map(_decode_submission, codec.read_rows(members, "submissions")))
    count = codec.read_int(members, "count")
    skipped = codec.read_int(members, "skipped_not_end_to_end_encrypted")
    if count is not None and count > len(items) + (skipped or 0):
        # It is all in one answer; one that is cut must not pass for all there is.
        raise ProtocolError(f"the service counts {count} submissions, but returned {len(items)}")
    known = ("submissions", "count", "skipped_not_end_to_end_encrypted")
    return Submissions(items, count, skipped, codec.select_unknown(members, *known))


def _decode_submission(row: Mapping[str, Any]) -> Submission:
    return Submission(
        codec.read_text(row, "short_code"),
        codec.read_text(row, "data"),
        codec.read_time(row, "created_at"),
        codec.read_text(row, "encryption_type"),
        codec.select_unknown(row, "short_code", "data", "created_at", "encryption_type"),
    )


def _decode_deleted(members: Mapping[str, Any], _: Mapping[str, str]) -> DeletedRequest:
    outcome = codec.read_text(members, "outcome")
    if outcome not in OUTCOMES:
        raise ProtocolError("the response to the DELETE does not say whether the request was expired or deleted")
    return DeletedRequest(
        codec.read_short_code(members), outcome, codec.select_unknown(members, "short_code", "outcome")
    )
