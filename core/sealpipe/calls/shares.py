"""Calls about shares: seal and share, create, list, read, expire; and resume what was interrupted."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sealpipe.api import shares as api
from sealpipe.api.shares import CreatedShare, without_wrap
from sealpipe.errors import PolicyError, StateError
from sealpipe.flows import call, outgoing, policy
from sealpipe.flows.session import Session
from sealpipe.flows.share import ShareOptions as ShareOptions
from sealpipe.flows.share import expire as expiring
from sealpipe.flows.share import post as sharing
from sealpipe.flows.share.post import Share
from sealpipe.plugin.context import LITERAL
from sealpipe.state.entry import Entry, keep_entry_on_error, refuse_old_entry
from sealpipe.state.outbox import Outbox
from sealpipe.values import parse_time

if TYPE_CHECKING:
    from sealpipe.api.account import ShareInfo
    from sealpipe.api.pages import Page
    from sealpipe.flows.deliver.send import Deliverable
    from sealpipe.flows.lookup import PageWalk
    from sealpipe.flows.request.create import SecureRequest
    from sealpipe.flows.share.expire import EndedShare


Created = TypeVar("Created", bound="Deliverable")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class _Ciphertext:
    data: str


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class CreateShareOptions(api.ShareMembers, _Ciphertext):
    """The arguments of `create_share`: those of the last base class come first."""

    idempotency_key: str | None = None


def create_share(session: Session, options: CreateShareOptions) -> CreatedShare:
    """Create a share from ciphertext that you sealed yourself (specification: POST /v1/shares).

    - `data`: the envelope, in standard base64: 44 bytes or more
    - `access_token`: 32 bytes in base64url, derived from the content key (`wire.tokens.access_token`)
    - `passcode_verifier`: 32 bytes in base64url, derived from the passcode; None: there is no passcode
    - `title`, `description`: texts, which the service can read
    - `expires_at`: when the link expires: a datetime with a time zone; None: left to the service
    - `views`: how often the share can be opened; None: left to the service
    - `item_key_wrap`: the content key sealed for the account's owner, in standard base64: 142 bytes; None: no custody
    - `timed_view`: how long the page shows the content once it is opened, in seconds; None: until the page is closed
    - `notify_on`: the events that the owner gets an email about, as for `share`; None: as the account is set
    - `organization_id`: the organisation that the share belongs to
    - `idempotency_key`: 1 to 255 visible ASCII characters, which name this share and no other; None: a new UUID

    Retried under one idempotency key until the outcome is known. Raises UsageError, which names the argument, and
    ServiceError. `share` also seals.
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

    def work(session: Session) -> CreatedShare:
        return call(api.create(body, key), session.start_budget())

    return policy.run_under_policy(session, plan, work, describe_created)


def describe_created(share: CreatedShare) -> Mapping[str, object]:
    """Describe a created share to observers."""
    return {"outcome": "replayed" if share.replayed else "created", "short_code": share.short_code}


def list_shares(session: Session, *, page: int = 1, limit: int = 25) -> Page[ShareInfo]:
    """List one page of active shares, newest first (specification: GET /v1/shares). `limit` is at most 100."""
    return call(api.list_page(page, limit), session.start_budget())


def iter_shares(session: Session, *, limit: int = 100) -> PageWalk[ShareInfo]:
    """Iterate over all active shares, page by page, newest first."""
    from sealpipe.flows.lookup import PageWalk

    return PageWalk(lambda page: list_shares(session, page=page, limit=limit), lambda row: row.short_code)


def get_share(session: Session, short_code: str) -> ShareInfo:
    """Get a share's metadata; uses no view (specification: GET /v1/shares/{shortCode}). Raises NotFoundError."""
    return call(api.get(short_code), session.start_budget())


def expire_share(session: Session, short_code: str, *, keep: str | Path | None = None) -> EndedShare:
    """Expire a share now (specification: DELETE /v1/shares/{shortCode}). Safe to call again at any time.

    `outcome` is `expired`, or `already-expired` if it was expired before. The service responds to a second call and to
    a wrong code alike, with 404 and code 1. So the second call succeeds only with proof that the share existed: its
    metadata, the list of expired shares, or a note in the folder `keep`, where each successful call writes one.
    Without proof, raises NotFoundError. Raises OutcomeUnknownError if no try has a known outcome.
    """
    return expiring.expire_share(session, short_code, None if keep is None else Path(keep))


def share(session: Session, options: ShareOptions) -> Share:
    """Seal fields, given as `Field` or by reference, and share them. Only `.link` opens the share.

    - `fields`: what to share: each a `Field`, or a reference such as `Root=vault:secret/app#root`
    - `name`: your own name for the share, which the service never gets; it fills `{name}` in `also_to`
    - `title`: a title, which the service can read
    - `description`: a description, which the service can read
    - `expires_in`: how long the link works: a timedelta, or text such as `24h`; None: until its views are used up
    - `expires_at`: when the link expires: a datetime with a time zone, which overrides `expires_in`
    - `views`: how often the share can be opened; None: no limit
    - `passcode`: what the recipient must enter, too, or the reference where it is read
    - `custody`: whether the account's owner can read the share: if possible (`auto`), always (`require`), never (`off`)
    - `timed_view`: how long the page shows the content once it is opened, in seconds; None: until the page is closed
    - `notify_on`: the events that the owner gets an email about: a list of `viewed`, `denied` (a wrong passcode),
      `expired` and `deleted`; None: as the account is set
    - `organization_id`: the organisation that the share belongs to
    - `outbox`: a folder: then the share survives a kill, and `.delivered()` removes its entry once the link is safe;
      None: nothing is written to disk
    - `passcode_generate`: whether to generate a passcode, which `passcode_to` delivers
    - `send`: the channels that deliver the link, such as `email:{to}`
    - `passcode_to`: the channels that deliver the passcode
    - `params`: the values of placeholders in channels, by name, as references: `{"to": "env:RECIPIENT"}`
    - `message_template`: the text of the message that `send` delivers: `{link}` once and, if you like, `{title}`,
      `{expires}` and `{views}`, which are filled in; None: a text that explains the link
    - `also_to`: the sinks that store the fields before the share is posted, such as
      `vault:secret/app?mode=merge#password=Password`

    All are checked before anything is sent. `.deliveries` has the state of each message. Raises UsageError,
    PluginError, ServiceError, DeliveryError if a message is not sent; OutcomeUnknownError has `.outbox_id`.
    """
    outbox = None if options.outbox is None else Outbox(Path(options.outbox), session.credential)
    return create_and_deliver(session, sharing.share(session, options, outbox), resend=False)


def resume(session: Session, entry: Entry, *, resend: bool = False) -> Share | SecureRequest:
    """Finish an entry of an `Outbox` (`outbox.open(id)`): the same share or request, the same link.

    Sends the remaining messages. With `resend`, also sends those that may have arrived, and repeats writes to sinks
    that cannot be read back. Raises DeliveryError.
    """
    return create_and_deliver(session, finish_entry(session, entry, resend=resend), resend=resend)


def create_and_deliver(session: Session, creation: Created, *, resend: bool) -> Created:
    """Create a share or request, and send its messages."""
    created = creation
    if created.deliveries is not None:
        from sealpipe.flows.deliver.send import deliver  # most shares have no messages

        with keep_entry_on_error(created.entry):
            deliver(session, created, resend=resend)
    return created


def finish_entry(session: Session, entry: Entry, *, resend: bool = False) -> Share | SecureRequest:
    """Finish an open entry: return its share or request, as recorded or by sending the same bytes again.

    With `resend`, repeats a write that may have reached a sink that cannot be read back. Raises StateError if the entry
    belongs to another service, OutcomeUnknownError if it is too old to be sent again, and the errors of sending.
    """
    if entry.meta["base_url"] != session.base_url:
        entry.close()
        raise StateError(
            f"{entry.label} was made for {entry.meta['base_url']}, not for {session.base_url}",
            remedy="set SEALPIPE_BASE_URL to the address that it was made for",
        )
    if session.fixed_link and entry.meta["link_base_url"] != session.link_base_url:
        entry.close()
        raise PolicyError(
            f"{entry.label} was made for links to {entry.meta['link_base_url']}, and this machine fixes "
            f"{session.link_base_url}",
            remedy=entry.fill_in("drop it with `sealpipe resume ID --discard`, and create it again"),
        )
    if entry.response is None:
        refuse_old_entry(entry)

    def work(session: Session) -> Share | SecureRequest:
        return _finish(session, entry, resend=resend)

    if not session.policy_hooks:
        return work(session)
    with keep_entry_on_error(entry):
        leaving = outgoing.describe_entry(session, entry.meta)
        return policy.run_under_policy(session, leaving, work, _describe_outcome)


def _describe_outcome(result: Share | SecureRequest) -> Mapping[str, object]:
    return {"outcome": result.outcome, "short_code": result.short_code}


def _finish(session: Session, entry: Entry, *, resend: bool) -> Share | SecureRequest:
    if entry.meta["kind"] == "request":
        from sealpipe.flows.request import create  # most entries are shares

        return create.resume(session, entry)
    if entry.response is not None:
        return _rebuild_share(entry)
    posting = sharing.Posting(entry.meta, entry.body, entry.key, entry)
    if entry.key != entry.meta["idempotency_key"]:
        posting.body = without_wrap(entry.body, entry.meta["wrap_at"])
    if entry.meta.get("also_to") and not entry.is_stored:
        from sealpipe.flows.store import write  # most shares have no target

        with keep_entry_on_error(entry):
            posting.stored = write.write_from_entry(session, entry, resend=resend)
    return sharing.post(session, posting, unclear=True)


def _rebuild_share(entry: Entry) -> Share:
    response, meta = entry.response or {}, entry.meta
    return Share(
        sharing.build_link(meta, response["short_code"]),
        response["short_code"],
        None if response["expires_at"] is None else parse_time(response["expires_at"]),
        response["custody"],
        "replayed" if response["replayed"] else "created",
        meta["title"],
        meta.get("name"),
        sharing.warn_of_custody(response["custody"], response["short_code"]),
        entry=entry,
        deliveries=outgoing.load_deliveries(meta, entry),
        expiry_known=response.get("expiry_known", True),
    )
