"""A share from plan to link: plan, resolve, seal, post; publishing is the caller's (DESIGN sections 1 and 6.1)."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal

from sealpipe.api import shares
from sealpipe.api.models import CreatedShare
from sealpipe.errors import CustodyNotStored, Invalid, Missing, OutcomeUnknown, ServiceError, StateError, UsageError
from sealpipe.flows.expire import expire_share
from sealpipe.flows.resolve import Cache, resolve, resolve_value
from sealpipe.flows.retry import Budget, call
from sealpipe.flows.session import Session
from sealpipe.flows.steps import Do, Flow
from sealpipe.reference import FieldSpec, Reference, parse_field
from sealpipe.secret import Secret
from sealpipe.settings import NOTIFY_ON
from sealpipe.state.outbox import Entry, Outbox, kept
from sealpipe.times import format_time
from sealpipe.wire import envelope, fields, link, tokens

Custody = Literal["auto", "require", "off"]
DEFAULT_EXPIRY = timedelta(hours=72)


@dataclass(frozen=True, slots=True)
class SharePlan:
    """What is to be shared, checked as far as that goes without a source or the service.

    `expires_at` None: no end. `views` None: as often as one likes.
    """

    fields: tuple[fields.Field | FieldSpec, ...]
    title: str | None = None
    description: str | None = None
    expires_at: datetime | None = None
    views: int | None = 1
    passcode: Secret | Reference | None = field(default=None, repr=False)
    custody: Custody = "auto"
    timed_view: int | None = None
    notify_on: tuple[str, ...] | None = None
    organization_id: str | None = None


@dataclass(frozen=True, slots=True)
class SealedShare:
    """A share as it will be posted: the exact body, where its wrap begins, and the key for the link."""

    body: bytearray = field(repr=False)
    wrap_at: int | None
    fragment: Secret
    passcode: Secret | None
    labels: tuple[tuple[str, str], ...]
    """Each field's label and type, for who wants to tell what was sealed."""


@dataclass(slots=True)
class Share:
    """A share that exists, and the only place its link exists. The link is a secret: it opens the share."""

    link: Secret
    short_code: str
    expires_at: datetime | None
    custody: str | None
    outcome: Literal["created", "replayed"]
    title: str | None = None
    warnings: tuple[str, ...] = ()
    entry: Entry | None = field(default=None, repr=False)

    def delivered(self) -> None:
        """The link is safe where it belongs: ends the outbox entry. Raises StateError where that fails."""
        entry, self.entry = self.entry, None
        if entry is not None:
            entry.end()

    def keep(self) -> None:
        """Leave the outbox entry to `resume`, now or in another process."""
        entry, self.entry = self.entry, None
        if entry is not None:
            entry.close()


def plan(
    items: Sequence[fields.Field | FieldSpec | str],
    *,
    title: str | None = None,
    description: str | None = None,
    expires_in: timedelta | None = DEFAULT_EXPIRY,
    expires_at: datetime | None = None,
    views: int | None = 1,
    passcode: str | Secret | Reference | None = None,
    custody: Custody = "auto",
    timed_view: int | None = None,
    notify_on: Sequence[str] | None = None,
    organization_id: str | None = None,
) -> SharePlan:
    """Check what is asked for. A string among the items is a reference, such as `Root=vault:secret/app#root`.

    `expires_at` stands before `expires_in`. Raises UsageError; nothing is fetched or sent.
    """
    if not items:
        raise UsageError("there is nothing to share", remedy="name at least one field, such as -f env:DB_PASSWORD")
    now = datetime.now(UTC)
    if expires_at is None and expires_in is not None:
        expires_at = now + expires_in
    if expires_at is not None and (expires_at.tzinfo is None or expires_at.utcoffset() is None):
        raise UsageError("the expiry has no time zone", remedy="give the datetime a tzinfo, such as datetime.UTC")
    if expires_at is not None and expires_at <= now:
        raise UsageError("the share would be over before it begins", remedy="give an expiry in the future")
    for name, number in (("views", views), ("timed_view", timed_view)):
        if number is not None and number < 1:
            raise UsageError(f"{name} is less than one", remedy="leave it out for no limit")
    if custody not in ("auto", "require", "off"):
        raise UsageError(f"custody {custody!r} is not one of auto, require, off")
    if notify_on is not None and (set(notify_on) - set(NOTIFY_ON) or len(set(notify_on)) < len(notify_on)):
        raise UsageError("notify_on names an event that is none, or one twice", remedy=", ".join(NOTIFY_ON))
    if isinstance(passcode, str | Secret):
        passcode = _checked(passcode if isinstance(passcode, Secret) else Secret(passcode))
    return SharePlan(
        tuple(parse_field(item) if isinstance(item, str) else item for item in items),
        title,
        description,
        expires_at,
        views,
        passcode,
        custody,
        timed_view,
        None if notify_on is None else tuple(notify_on),
        organization_id,
    )


def prepare(plan: SharePlan, session: Session) -> Flow[SealedShare]:
    """Fetch what the plan names, and seal it. Everything but sending."""
    if plan.custody == "require" and session.credential.custody_secret is None:
        raise UsageError(
            "custody is required and the credential has no custody secret",
            remedy="use the whole credential, all three parts, or --custody auto",
        )
    cache: Cache = {}
    found = yield from resolve(plan.fields, session.registry, cache)
    passcode = plan.passcode
    if isinstance(passcode, Reference):
        value = yield from resolve_value(passcode, session.registry, cache)
        if value is None:
            # Sealing without it would drop the protection that was asked for.
            raise UsageError("the passcode is missing", remedy="take ?optional=1 off its reference, and set it")
        passcode = _checked(value)
    sealed: SealedShare = yield Do(partial(_seal, plan, found, passcode, session))
    return sealed


def share(session: Session, plan: SharePlan, outbox: Outbox | None = None, **notes: object) -> Flow[Share]:
    """The whole way to a link. With an outbox the entry is open until `delivered()`; `notes` go into it."""
    sealed = yield from prepare(plan, session)
    meta = _meta(sealed, plan, session, notes)
    entry: Entry | None = None
    if outbox is not None:
        entry = yield Do(partial(outbox.add, meta, sealed.body))
    return (yield from post(session, Posting(meta, sealed.body, meta["idempotency_key"], entry), session.budget()))


@dataclass(slots=True)
class Posting:
    """A sealed share on its way, kept in the outbox or not. `key` is its idempotency key."""

    meta: Mapping[str, Any] = field(repr=False)
    body: bytes | bytearray = field(repr=False)
    key: str
    entry: Entry | None = None
    warnings: list[str] = field(default_factory=list)


def post(session: Session, posting: Posting, budget: Budget, *, unclear: bool = False) -> Flow[Share]:
    """Send the stored bytes until the outcome is known, and keep account of it. `unclear`: they were sent before."""
    entry, meta = posting.entry, posting.meta
    with kept(entry):
        try:
            created = yield from _create(posting, budget, unclear=unclear)
            if meta["custody"] == "require" and created.custody != "stored":
                yield from _take_back(session, created)
        except ServiceError as error:
            if entry is not None and error.unclear:
                error.outbox_id = entry.id
                error.remedy = f"run `sealpipe resume {entry.id}`: it sends the same bytes under the same key"
            else:
                _nothing_to_keep(entry)
            raise
        except UsageError:
            # A setting of the network is wrong (a certificate file, a proxy): nothing was sent.
            if not unclear:
                _nothing_to_keep(entry)
            raise
    yield Do(partial(_keep_answer, posting, created))
    return Share(
        link_of(meta, created.short_code),
        created.short_code,
        created.expires_at,
        created.custody,
        "replayed" if created.replayed else "created",
        meta["title"],
        tuple(posting.warnings),
        entry,
    )


def link_of(meta: Mapping[str, Any], short_code: str) -> Secret:
    """The link of a share whose short code is known."""
    return Secret(link.share_link(meta["link_base_url"], short_code, link.decode_fragment(meta["fragment"].reveal())))


def _create(posting: Posting, budget: Budget, *, unclear: bool) -> Flow[CreatedShare]:
    """Send; and once more, as a new share, where the key turns out to have custody none (DESIGN 6.1)."""
    try:
        return (yield from call(shares.create(posting.body, posting.key), budget, unclear=unclear))
    except Invalid as error:
        wrap_at = posting.meta["wrap_at"]
        refused_wrap = error.error_code == 19 and "item_key_wrap" in error.additional_data
        if not refused_wrap or wrap_at is None or posting.key != posting.meta["idempotency_key"]:
            raise
        if posting.meta["custody"] != "auto":
            raise
    posting.warnings.append("the key has no custody level: the share was made without a wrap, its link is all there is")
    posting.key = str(uuid.uuid4())
    posting.body = shares.without_wrap(posting.body, wrap_at)
    if posting.entry is not None:
        yield Do(partial(posting.entry.note_new_key, posting.key))
    return (yield from call(shares.create(posting.body, posting.key), budget))


def _nothing_to_keep(entry: Entry | None) -> None:
    if entry is not None:
        with suppress(StateError):  # why the share failed matters more than a file that could not be removed
            entry.end()


def _take_back(session: Session, created: CreatedShare) -> Flow[None]:
    try:
        yield from expire_share(session, created.short_code)
    except Missing:
        pass  # an earlier try to take it back got through
    except ServiceError as error:
        kept = OutcomeUnknown(f"the share {created.short_code} has not the custody required: {error.message}")
        kept.unclear = True
        raise kept from None
    raise CustodyNotStored(
        f"custody was required and the service answered {created.custody!r}: the share {created.short_code} "
        "was expired again, its link was given to nobody"
    )


def _keep_answer(posting: Posting, created: CreatedShare) -> None:
    if posting.entry is None:
        return
    expires_at = None if created.expires_at is None else format_time(created.expires_at)
    answer = {
        "short_code": created.short_code,
        "expires_at": expires_at,
        "custody": created.custody,
        "replayed": created.replayed,
    }
    try:
        posting.entry.note_answer(answer)
    except StateError as error:
        # The share is there and its link is in hand. Without the note, `resume` replays the create: no harm.
        posting.warnings.append(error.message)


def _meta(sealed: SealedShare, plan: SharePlan, session: Session, notes: Mapping[str, object]) -> dict[str, Any]:
    """What the outbox holds beside the body (DESIGN 6.1); the journal is sealed, so secrets may stand here."""
    return {
        "schema": 1,
        "kind": "share",
        "idempotency_key": str(uuid.uuid4()),
        "base_url": session.base_url,
        "link_base_url": session.link_base_url,
        "fragment": sealed.fragment,
        "passcode": sealed.passcode,
        "wrap_at": sealed.wrap_at,
        "custody": plan.custody,
        "title": plan.title,
        **notes,
    }


def _seal(plan: SharePlan, found: Sequence[fields.Field], passcode: Secret | None, session: Session) -> SealedShare:
    content_key = os.urandom(32)
    code = None if passcode is None else passcode.reveal()
    body, wrap_at = shares.build_body(
        lambda out: envelope.seal_chunks(content_key, fields.chunks(found), code, out=out),
        access_token=tokens.access_token(content_key),
        passcode_verifier=None if code is None else tokens.passcode_verifier(code),
        title=plan.title,
        description=plan.description,
        expires_at=plan.expires_at,
        views=plan.views,
        timed_view=plan.timed_view,
        notify_on=plan.notify_on,
        organization_id=plan.organization_id,
        item_key_wrap=None if plan.custody == "off" else _wrap(content_key, session),
    )
    labels = tuple((item.key, item.type) for item in found)
    return SealedShare(body, wrap_at, Secret(link.encode_fragment(content_key)), passcode, labels)


def _wrap(content_key: bytes, session: Session) -> str | None:
    custody_secret = session.credential.custody_secret
    if custody_secret is None:
        return None
    from sealpipe.wire import keys, sealed_box  # elliptic curves: only for who has custody

    tag = session.credential.tag
    return sealed_box.seal(keys.from_custody_secret(custody_secret.reveal(), tag=tag).public_key, content_key, tag=tag)


def _checked(passcode: Secret) -> Secret:
    """A passcode that a person can type: not empty, one line, nothing unprintable."""
    text = passcode.reveal()
    if not text:
        raise UsageError("the passcode is empty", remedy="leave it out, or give one")
    if text.endswith(("\n", "\r")):
        raise UsageError(
            "the passcode ends in a line end, which nobody can type",
            remedy="add ?trim=1 to its reference, or write the file without a final newline",
        )
    if not text.isprintable():
        raise UsageError("the passcode holds a character that nobody can type", remedy="use printable characters")
    return passcode
