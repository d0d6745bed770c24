"""The request endpoints as operations, and their results (specification: /v1/requests)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeVar

from sealpipe.api import responses
from sealpipe.api.operation import Operation, Resend, Response, encode_members
from sealpipe.api.pages import Page, read_page
from sealpipe.errors import ProtocolError, PublicKeyMismatchError, UsageError
from sealpipe.parsing import format_optional_time
from sealpipe.secret import Secret, as_secret
from sealpipe.wire.encoding import encode_base64url, encoded
from sealpipe.wire.link import called

T = TypeVar("T")

SUBMISSIONS_LIMIT = 64 * 1024 * 1024
"""Maximum size in bytes of the response with all submissions."""
MAX_SUBMISSIONS = 200_000
"""Maximum number of submissions in it: more than fit if they are sealed.

It limits the number of empty rows.
"""

OUTCOMES = ("expired", "deleted")


@dataclass(frozen=True, slots=True)
class CreatedRequest:
    """A created request.

    `public_key` is the one that was sent, base64url of 65 bytes; None if the service did not repeat
    it. With `replayed`, an earlier attempt with the same bytes had created the request. If
    `expiry_known` is False, the service did not say when it expires.
    """

    short_code: str
    expires_at: datetime | None
    public_key: str | None
    replayed: bool
    extra: Mapping[str, Any] = field(default_factory=dict)
    expiry_known: bool = True


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """A request's metadata (specification: Secure request metadata).

    Both `expires_at` and `public_key` (base64url of 65 bytes) are None once the request has expired
    or was deleted. `answered_at` is the service's time of the response (HTTP `Date`); None if it
    sent none, and in lists.
    """

    short_code: str
    expires_at: datetime | None
    public_key: str | None
    answered_at: datetime | None = field(default=None, compare=False)
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_ended(self) -> bool:
        """Whether it has expired or was deleted: no more submissions can come."""
        return self.expires_at is None and self.public_key is None


@dataclass(frozen=True, slots=True)
class Submission:
    """A submission to a request. `data` is the ciphertext, standard base64 of a sealed box.

    Members are None if the service did not say. Nothing was verified, and the sender is not
    authenticated.
    """

    short_code: str | None
    data: str | None = field(repr=False)
    created_at: datetime | None = None
    encryption_type: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def identity(self) -> tuple[str | None, str | None]:
        """The short code and the ciphertext, which identify the submission."""
        return self.short_code, self.data


@dataclass(frozen=True, slots=True)
class Submissions:
    """All submissions to a request.

    `skipped` counts those that were not end-to-end encrypted and are left out.
    """

    items: tuple[Submission, ...]
    count: int | None
    skipped: int | None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """How many there are, with those that are left out. `count` is what the service says."""
        return len(self.items) + (self.skipped or 0)


@dataclass(frozen=True, slots=True)
class DeletedRequest:
    """The effect of a DELETE on a request: `expired` (was active) or `deleted` (all is gone)."""

    short_code: str
    outcome: str
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class RequestMembers:
    """The members of the create body, in the order of `Client.create_request`'s arguments."""

    title: str
    public_key: bytes
    fields: Sequence[tuple[str, str]]
    """Pairs of prompt and type."""
    description: str | None = None
    expires_at: datetime | None = None
    max_submissions: int | None = None
    views: int | None = None
    passcode: str | Secret | None = None
    requires_login: bool | None = None
    requires_mfa: bool | None = None
    restricted_domains: Sequence[str] | None = None
    ip_whitelist: Sequence[str] | None = None
    organization_id: str | None = None


def build_body(sent: RequestMembers) -> bytes:
    """Build the create body. Raises UsageError if there is no prompt.

    The body contains the passcode as plain text: it protects a form that the service renders.
    """
    if not sent.fields:
        # The service would accept it, and the submitter would see an error page.
        raise UsageError(
            "the request has no prompts", remedy="give it at least one prompt and its type"
        )
    return encode_members(
        {
            "title": sent.title,
            "public_key": encode_base64url(sent.public_key),
            "fields": [{"item": item, "type": kind} for item, kind in sent.fields],
            "description": sent.description,
            "expired_at": format_optional_time(sent.expires_at),
            "max_submission": sent.max_submissions,
            "access_counts_left": sent.views,
            "passcode": None if sent.passcode is None else as_secret(sent.passcode).reveal(),
            "requires_login": sent.requires_login,
            "requires_mfa": sent.requires_mfa,
            "restricted_domain": None
            if sent.restricted_domains is None
            else list(sent.restricted_domains),
            "ip_whitelist": None if sent.ip_whitelist is None else list(sent.ip_whitelist),
            "organization_id": sent.organization_id,
        }
    )


def create(body: bytes, idempotency_key: str, public_key: bytes) -> Operation[CreatedRequest]:
    """POST /v1/requests. Repeatable under the same key with the same bytes; a replay is a success.

    A response with another public key than the one sent is refused: our key could not open any
    submission.
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


def list_page(
    page: int = 1, limit: int = 25, status: Literal["expired"] | None = None
) -> Operation[Page[RequestInfo]]:
    """GET /v1/requests: the active requests, newest first; with `status="expired"` the others."""
    query = {"page": str(page), "limit": str(limit)}
    return Operation(
        name="list the requests",
        method="GET",
        path="/requests",
        resend=Resend.READ,
        decode=lambda response: read_page(
            responses.parse_object(response), "requests", _decode_item
        ),
        query=query if status is None else {**query, "status": status},
    )


def get(short_code: str) -> Operation[RequestInfo]:
    """GET /v1/requests/{shortCode}: changes nothing.

    Of an expired request the response has no expiry and no key.
    """
    path = f"/requests/{called(short_code)}"
    return Operation(
        "read the request", "GET", path, Resend.READ, _decode_about(short_code, _decode_info)
    )


def list_submissions(short_code: str) -> Operation[Submissions]:
    """GET /v1/requests/{shortCode}/submissions: all of them in one response of up to 64 MiB."""
    path = f"/requests/{called(short_code)}/submissions"
    return Operation(
        "read the submissions",
        "GET",
        path,
        Resend.READ,
        _decode_submissions,
        limit=SUBMISSIONS_LIMIT,
    )


def delete(short_code: str) -> Operation[DeletedRequest]:
    """DELETE /v1/requests/{shortCode}.

    Sent only once: a second one destroys the submissions for good.

    It has a connection of its own: a reused one could be half closed, and then it is unknown
    whether the call arrived.
    """
    path = f"/requests/{called(short_code)}"
    decode = _decode_about(short_code, _decode_deleted)
    return Operation(
        "expire the request", "DELETE", path, Resend.NEVER, decode, own_connection=True
    )


def _decode_created(response: Response, sent_key: str) -> CreatedRequest:
    if response.status not in (200, 201):
        raise ProtocolError(
            f"the service responded to a create with {response.status}", status=response.status
        )
    members = responses.parse_object(response)
    public_key = responses.read_text(members, "public_key")
    # The key may be missing here: an idempotency key belongs to one body, byte for byte, so to one
    # public key (105).
    if public_key is not None and public_key != sent_key:
        short_code = responses.read_short_code(members)
        mismatch = PublicKeyMismatchError(
            "the service shows the request with another public key than the one sent: submissions "
            "to that key could not be decrypted",
            remedy="do not send its link; end it with `sealpipe requests expire -- "
            f"{encoded(short_code)}`, and create a new request",
            status=response.status,
        )
        mismatch.short_code = short_code
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
    """Decode a response that must be about the given request.

    Raises ProtocolError if it is about another.
    """

    def decode(response: Response) -> T:
        members = responses.parse_object(response)
        if responses.read_short_code(members) != short_code:
            raise ProtocolError("the response is about another request")
        return read(members, response.headers)

    return decode


def _decode_info(members: Mapping[str, Any], headers: Mapping[str, str]) -> RequestInfo:
    return _decode_item(members, responses.read_clock(headers))


def _decode_submissions(response: Response) -> Submissions:
    members = responses.parse_object(response)
    if not isinstance(members.get("submissions"), list):
        raise ProtocolError("the service's response has no array of submissions")
    if len(members["submissions"]) > MAX_SUBMISSIONS:
        raise ProtocolError(f"the service's response has more than {MAX_SUBMISSIONS} submissions")
    items = tuple(map(_decode_submission, responses.read_rows(members, "submissions")))
    count = responses.read_int(members, "count")
    skipped = responses.read_int(members, "skipped_not_end_to_end_encrypted")
    known = ("submissions", "count", "skipped_not_end_to_end_encrypted")
    found = Submissions(items, count, skipped, responses.select_unknown(members, *known))
    if count is not None and count > found.total:
        # All submissions come in one response: a truncated one must not be taken for complete.
        raise ProtocolError(f"the service counts {count} submissions, but returned {len(items)}")
    return found


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
        raise ProtocolError(
            "the response to the DELETE does not say whether the request was expired or deleted"
        )
    return DeletedRequest(
        responses.read_short_code(members),
        outcome,
        responses.select_unknown(members, "short_code", "outcome"),
    )
