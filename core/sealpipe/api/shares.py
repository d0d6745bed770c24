"""The share endpoints as operations (specification: POST/GET/DELETE /v1/shares)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from sealpipe.api import responses
from sealpipe.api.operation import Operation, Resend, Response, encode_members
from sealpipe.errors import ProtocolError
from sealpipe.parsing import format_optional_time
from sealpipe.wire.encoding import encoded
from sealpipe.wire.link import called

if TYPE_CHECKING:
    from sealpipe.api.account import ShareInfo
    from sealpipe.api.pages import Page


@dataclass(frozen=True, slots=True)
class CreatedShare:
    """A created share (specification: Share create response).

    `expires_at` is None for a share without an expiry, and if the service did not say: then
    `expiry_known` is False. `custody` is `none`, `stored` or `failed`, or None if the service did
    not say. With `replayed`, an earlier attempt with the same bytes had created the share.
    """

    short_code: str
    expires_at: datetime | None
    custody: str | None
    replayed: bool
    extra: Mapping[str, Any] = field(default_factory=dict)
    expiry_known: bool = True


ENCRYPTION_TYPE = "e2ee-aes256-gcm"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ShareMembers:
    """The members sent with a share's ciphertext, as `Client.create_share` orders them."""

    access_token: str
    passcode_verifier: str | None = None
    title: str | None = None
    description: str | None = None
    expires_at: datetime | None = None
    views: int | None = None
    item_key_wrap: str | None = None
    timed_view: int | None = None
    notify_on: Sequence[str] | None = None
    organization_id: str | None = None


_BEFORE_DATA: Final = b'{"encryption_type":"%s","data":"' % ENCRYPTION_TYPE.encode()
_AFTER_DATA: Final = b'","access_token":'


def build_body(
    append_data: Callable[[bytearray], object], sent: ShareMembers
) -> tuple[bytearray, int | None]:
    """Build the create body; return it and the offset of its `item_key_wrap`, or None.

    `append_data` appends the envelope's base64 text, so that a large one is never copied.
    `item_key_wrap` is the last member, so that `without_wrap` can cut it off without encrypting
    again.
    """
    members: dict[str, object] = {
        "access_token": sent.access_token,
        "passcode_verifier": sent.passcode_verifier,
        "title": sent.title,
        "description": sent.description,
        "expired_at": format_optional_time(sent.expires_at),
        "access_counts_left": sent.views,
        "timed_view": sent.timed_view,
        "notify_on": None if sent.notify_on is None else list(sent.notify_on),
        "organization_id": sent.organization_id,
    }
    body = bytearray(_BEFORE_DATA)
    append_data(body)
    body += b'",'
    body += encode_members(members)[1:]  # begins with the access token
    if sent.item_key_wrap is None:
        return body, None
    wrap_at = len(body) - 1
    body[wrap_at:] = b',"item_key_wrap":"%s"}' % sent.item_key_wrap.encode()
    return body, wrap_at


def without_wrap(body: bytes | bytearray, wrap_at: int) -> bytes:
    """Return the body without its `item_key_wrap`, which begins at `wrap_at`."""
    return bytes(memoryview(body)[:wrap_at]) + b"}"


def create(
    body: bytes | bytearray, idempotency_key: str, *, is_ours: bool = False
) -> Operation[CreatedShare]:
    """POST /v1/shares. Repeatable under the same key with the same bytes; a replay is a success.

    With `is_ours`, we sealed its data ourselves: that is not searched for the credential.
    """
    return Operation(
        name="create the share",
        method="POST",
        path="/shares",
        resend=Resend.KEYED,
        decode=_decode_created,
        body=body,
        headers={"idempotency-key": idempotency_key, "content-type": "application/json"},
        sealed=_find_data(body) if is_ours else None,
    )


def _find_data(body: bytes | bytearray) -> tuple[int, int] | None:
    """Return where the envelope's base64 text is in a body of `build_body`, without reading it."""
    # JSON escapes the quotes of a text that has the same words.
    start, end = (
        len(_BEFORE_DATA),
        body.rfind(_AFTER_DATA),
    )
    return (start, end) if body.startswith(_BEFORE_DATA) and end >= start else None


def list_page(
    page: int = 1, limit: int = 25, status: Literal["expired"] | None = None
) -> Operation[Page[ShareInfo]]:
    """GET /v1/shares: the active shares, newest first; with `status="expired"` the others.

    The service corrects values out of range. A service without `status` may return the active
    shares all the same.
    """
    query = {"page": str(page), "limit": str(limit)}
    return Operation(
        name="list the shares",
        method="GET",
        path="/shares",
        resend=Resend.READ,
        decode=_decode_page,
        query=query if status is None else {**query, "status": status},
    )


def get(short_code: str) -> Operation[ShareInfo]:
    """GET /v1/shares/{shortCode}: metadata only; uses no view."""
    return Operation(
        "read the share", "GET", f"/shares/{called(short_code)}", Resend.READ, _decode_info
    )


def expire(short_code: str) -> Operation[None]:
    """DELETE /v1/shares/{shortCode}: the link stops working at once.

    May be repeated: the second call gets 404/1.
    """
    return Operation(
        "expire the share",
        "DELETE",
        f"/shares/{called(short_code)}",
        Resend.REPEATABLE,
        _decode_expired,
        if_unknown=f"run `sealpipe shares expire -- {encoded(short_code)}` again: repeating it "
        "does no harm",
    )


def _decode_created(response: Response) -> CreatedShare:
    if response.status not in (200, 201):
        raise ProtocolError(
            f"the service responded to a create with {response.status}", status=response.status
        )
    members = responses.parse_object(response)
    return CreatedShare(
        responses.read_short_code(members),
        responses.read_time(members, "expired_at"),
        responses.read_text(members, "custody"),
        replayed=response.status == 200,
        extra=responses.select_unknown(members, "short_code", "expired_at", "custody"),
        expiry_known="expired_at" in members,
    )


def _decode_info(response: Response) -> ShareInfo:
    return _decode_item(responses.parse_object(response))


def _decode_item(members: Mapping[str, object]) -> ShareInfo:
    from sealpipe.api.account import ShareInfo  # creating a share does not need it

    return ShareInfo(
        responses.read_short_code(members),
        responses.read_time(members, "expired_at"),
        responses.select_unknown(members, "short_code", "expired_at"),
        expiry_known="expired_at" in members,
    )


def _decode_page(response: Response) -> Page[ShareInfo]:
    from sealpipe.api.pages import read_page  # most commands read no list

    return read_page(responses.parse_object(response), "shares", _decode_item)


def _decode_expired(response: Response) -> None:
    if responses.parse_object(response).get("success") is not True:
        raise ProtocolError("the service responded 200 to the expiry, but did not confirm it")
