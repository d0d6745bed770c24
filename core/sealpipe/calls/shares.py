"""Calls about shares: seal and share, create, list, read, expire; and resume what was interrupted."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sealpipe.api import shares as api
from sealpipe.api.shares import CreatedShare
from sealpipe.flows import Flow, call, outgoing, policy
from sealpipe.flows import resume as resuming
from sealpipe.flows.session import Session
from sealpipe.flows.share import ShareOptions as ShareOptions
from sealpipe.flows.share import expire as expiring
from sealpipe.flows.share import post as sharing
from sealpipe.flows.share.post import Share
from sealpipe.plugin.context import LITERAL
from sealpipe.state.entry import Entry, keep_entry_on_error
from sealpipe.state.outbox import Outbox

if TYPE_CHECKING:
    from sealpipe.api.account import Page, ShareInfo
    from sealpipe.flows.deliver.send import Deliverable
    from sealpipe.flows.lookup import PageWalk
    from sealpipe.flows.request.create import SecureRequest
    from sealpipe.flows.share.expire import EndedShare

Made = TypeVar("Made", bound="Deliverable")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class _Ciphertext:
    data: str


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class CreateShareOptions(api.ShareMembers, _Ciphertext):
    """The arguments of `create_share`: those of the last base class come first."""

    idempotency_key: str | None = None


def create_share(session: Session, options: CreateShareOptions) -> Flow[CreatedShare]:
    """Create a share from ciphertext that you sealed yourself (specification: POST /v1/shares).

    `data` is standard base64 of the envelope (44 bytes or more), `item_key_wrap` of the box (142 bytes);
    `access_token` and `passcode_verifier` are base64url (32 bytes). Retried under one idempotency key until the
    outcome is known. Raises UsageError, which names the argument, and ServiceError. `share` also seals.
    """
    body, _ = api.build_body(lambda out: out.extend(options.data.encode()), options)
    plan = outgoing.describe_raw(
        session,
        "share",
        sources=(LITERAL,),
        title=options.title,
        expires_at=options.expires_at,
        views=options.views,
    )
    key = str(uuid.uuid4()) if options.idempotency_key is None else options.idempotency_key
    work = call(api.create(body, key), session.start_budget())
    return policy.run_under_policy(session, plan, work, describe_created)


def describe_created(share: CreatedShare) -> Mapping[str, object]:
    """Describe a created share to observers."""
    return {"outcome": "replayed" if share.replayed else "created", "short_code": share.short_code}


def list_shares(session: Session, *, page: int = 1, limit: int = 25) -> Flow[Page[ShareInfo]]:
    """List one page of active shares, newest first (specification: GET /v1/shares). `limit` is at most 100."""
    return call(api.list_page(page, limit), session.start_budget())


def iter_shares(session: Session, *, limit: int = 100) -> PageWalk[ShareInfo]:
    """Iterate over all active shares, page by page, newest first."""
    from sealpipe.flows.lookup import PageWalk

    return PageWalk(lambda page: list_shares(session, page=page, limit=limit), lambda row: row.short_code)


def get_share(session: Session, short_code: str) -> Flow[ShareInfo]:
    """Get a share's metadata; uses no view (specification: GET /v1/shares/{shortCode}). Raises NotFoundError."""
    return call(api.get(short_code), session.start_budget())


def expire_share(session: Session, short_code: str, *, keep: str | Path | None = None) -> Flow[EndedShare]:
    """Expire a share now (specification: DELETE /v1/shares/{shortCode}). Safe to call again at any time.

    `outcome` is `expired`, or `already-expired` if it was expired before. The service responds to a second call and to
    a wrong code alike, with 404 and code 1. So the second call succeeds only with proof that the share existed: its
    metadata, the list of expired shares, or a note in the folder `keep`, where each successful call writes one.
    Without proof, raises NotFoundError. Raises OutcomeUnknownError if no try has a known outcome.
    """
    return expiring.expire_share(session, short_code, None if keep is None else Path(keep))


def share(session: Session, options: ShareOptions) -> Flow[Share]:
    """Seal fields, given as `Field` or by reference, and share them. Only `.link` opens the share.

    `send` and `passcode_to` name channels (`email:{to}`); `params` are the values of their placeholders, by reference.
    All are checked before anything is sent. `.deliveries` has the state of each message; if one is not sent, raises
    DeliveryError.

    `also_to` names sinks (`vault:secret/app?mode=merge#password=Password`) that store the fields before the share is
    posted. Nothing is written to disk unless `outbox` names a folder: then the share survives a kill, and
    `.delivered()` removes its entry once the link is safe. `expires_in=None` without `expires_at` means no expiry,
    `views=None` no limit. Raises UsageError, PluginError, ServiceError; OutcomeUnknownError has `.outbox_id`.
    """
    outbox = None if options.outbox is None else Outbox(Path(options.outbox), session.credential)
    return create_and_deliver(session, sharing.share(session, options, outbox), resend=False)


def resume(session: Session, entry: Entry, *, resend: bool = False) -> Flow[Share | SecureRequest]:
    """Finish an entry of an `Outbox` (`outbox.open(id)`): the same share or request, the same link.

    Sends the remaining messages. With `resend`, also sends those that may have arrived, and repeats writes to sinks
    that cannot be read back. Raises DeliveryError.
    """
    return create_and_deliver(session, resuming.resume(session, entry, resend=resend), resend=resend)


def create_and_deliver(session: Session, creation: Flow[Made], *, resend: bool) -> Flow[Made]:
    """Create a share or request, and send its messages."""
    created = yield from creation
    if created.deliveries is not None:
        from sealpipe.flows.deliver.send import deliver  # most shares have no messages

        with keep_entry_on_error(created.entry):
            yield from deliver(session, created, resend=resend)
    return created
