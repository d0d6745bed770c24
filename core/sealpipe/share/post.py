"""A share from its job to its link: resolve, seal, post. Publishing the link is left to the caller.

The body is journaled before it is sent, and every try sends the same bytes under the same key, so
that a kill or a lost response neither loses the share nor makes a second one.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from sealpipe import actions, policy
from sealpipe.api import shares
from sealpipe.api.shares import CreatedShare
from sealpipe.budget import call
from sealpipe.errors import (
    CustodyError,
    InvalidRequestError,
    Note,
    NotFoundError,
    OutcomeUnknownError,
    PluginError,
    SealpipeError,
    ServiceError,
    StateError,
    UsageError,
)
from sealpipe.parsing import format_optional_time
from sealpipe.plugin import OutgoingAction
from sealpipe.reference import FieldSpec
from sealpipe.secret import Secret
from sealpipe.session import Session
from sealpipe.share.options import ShareJob
from sealpipe.share.seal import NO_CUSTODY_LEVEL, SealedShare, seal_share
from sealpipe.state.entry import (
    Entry,
    EntryStore,
    JournaledLink,
    discard_entry,
    keep_entry_on_error,
    settle_entry,
)
from sealpipe.wire import link
from sealpipe.wire.encoding import encoded

if TYPE_CHECKING:
    from sealpipe.delivery.send import Deliveries


@dataclass(slots=True)
class Share(JournaledLink):
    """A share that exists, and the only copy of its link.

    The link is a secret: it opens the share.
    """

    kind: ClassVar[str] = "share"

    link: Secret
    short_code: str
    expires_at: datetime | None
    custody: str | None
    outcome: Literal["created", "replayed"]
    title: str | None = None
    name: str | None = None
    warnings: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    deliveries: Deliveries | None = field(default=None, repr=False)
    """The messages to send, with their states; None if there are none."""
    expiry_known: bool = True
    """Whether the service said when the share expires; if not, `expires_at` is None, too."""


def share(
    session: Session, job: ShareJob, outbox: EntryStore | None = None, **notes: object
) -> Share:
    """Create a share.

    With an outbox, the entry is open until `delivered()`; `notes` are added to it.
    """
    session.check_clear(job.name, job.title, job.description, job.message_template)
    policy.check_policies(session, lambda: describe_share(session, job))
    sealed = seal_share(job, session)
    action = describe_share(session, job, sealed)
    meta = _make_entry_meta(
        sealed, job, session, {"overseen": actions.to_entry_note(action), **notes}
    )
    created = policy.run_under_policy(
        session,
        action,
        lambda cleared: _store_and_post(cleared, meta, sealed, outbox),
        describe_outcome,
    )
    created.remarks = (*sealed.remarks, *created.remarks)
    return created


def plan_dry_run(session: Session, job: ShareJob) -> SealedShare:
    """Do everything but store and send, policies included, for `share --dry-run`."""
    session.check_clear(job.name, job.title, job.description, job.message_template)
    policy.check_policies(session, lambda: describe_share(session, job))
    sealed = seal_share(job, session)
    policy.check_policies(session, lambda: describe_share(session, job, sealed))
    return sealed


def describe_share(
    session: Session, job: ShareJob, sealed: SealedShare | None = None
) -> OutgoingAction:
    """Describe a share.

    Without `sealed` its sources are not read yet, so labels, recipients and expiry are unknown.
    """
    inputs = [each.ref if isinstance(each, FieldSpec) else None for each in job.fields]
    action = actions.describe_new(session, "share", inputs, job.delivery, job.title, job.passcode)
    sinks = actions.identify_all(session, "sink", (target.ref.name for target in job.targets))
    action = action._replace(sinks=sinks, views=job.views)
    if sealed is None:
        return action._replace(complete=False)
    return actions.with_recipients(session, action, sealed.recipients)._replace(
        labels=sealed.labels, expires_at=sealed.expires_at
    )


def describe_outcome(share: Share) -> Mapping[str, object]:
    """Return what observers see of a created share."""
    return {"outcome": share.outcome, "short_code": share.short_code}


def _store_and_post(
    session: Session, meta: Mapping[str, Any], sealed: SealedShare, outbox: EntryStore | None
) -> Share:
    """Journal the share, write its targets before anybody gets a link, and post it."""
    entry: Entry | None = None
    if outbox is not None:
        entry = outbox.add(meta, sealed.body)
    posting = Posting(
        meta, sealed.body, meta["idempotency_key"], entry, warnings=[*sealed.warnings]
    )
    if sealed.writes:
        from sealpipe.sinks import write

        with keep_entry_on_error(entry):
            try:
                writes = write.mark_writes(sealed.writes, meta)
                posting.stored = write.write_share_fields(session, writes, entry)
            except StateError:
                raise  # the fields are stored; only the note is missing, so `resume` can share them
            except (PluginError, UsageError):
                discard_entry(entry)
                raise
    return post(session, posting)


@dataclass(slots=True, eq=False)
class Posting:
    """A sealed share while it is posted, with or without an outbox entry.

    `key` is its idempotency key.
    """

    meta: Mapping[str, Any] = field(repr=False)
    body: bytes | bytearray = field(repr=False)
    key: str
    entry: Entry | None = None
    stored: tuple[str, ...] = ()
    """Where its fields were stored, as text."""
    warnings: list[str] = field(default_factory=list)


def post(session: Session, posting: Posting, *, unclear: bool = False) -> Share:
    """Send the stored bytes until the outcome is known, and record it.

    With `unclear`, they may have been sent.
    """
    entry, meta = posting.entry, posting.meta
    with keep_entry_on_error(entry), _note_stored(posting.stored):
        with settle_entry(entry, unclear=unclear):
            created = _create(session, posting, unclear=unclear)
            if meta["custody"] == "require" and created.custody != "stored":
                _expire_without_custody(session, created)
        _note_response(posting, created)
    return Share(
        build_link(meta, created.short_code),
        created.short_code,
        created.expires_at,
        created.custody,
        "replayed" if created.replayed else "created",
        meta["title"],
        meta.get("name"),
        (*posting.warnings, *warn_of_custody(created.custody, created.short_code)),
        posting.stored,
        entry=entry,
        deliveries=actions.load_deliveries(meta, entry),
        expiry_known=created.expiry_known,
    )


@contextmanager
def _note_stored(stored: Sequence[str]) -> Iterator[None]:
    """Add a note to an error of this block: where the fields were stored before."""
    try:
        yield
    except SealpipeError as error:
        for line in stored:
            error.add_note(Note(f"before that, it was {line}"))
        raise


def warn_of_custody(custody: str | None, short_code: str) -> tuple[str, ...]:
    """Return a warning if the service could not keep the owner's copy of the key.

    Specification: custody.
    """
    if custody != "failed":
        return ()

    warning = (
        "custody failed: the service could not keep the owner's copy of the key, so the "
        "owner cannot read this share "
        "later, and only its link opens it. If that is not enough: "
        f"`sealpipe shares expire -- {encoded(short_code)}`, and share again with --custody require"
    )
    return (warning,)


def build_link(meta: Mapping[str, Any], short_code: str) -> Secret:
    """Build the link of a share whose short code is known."""
    return Secret(
        link.share_link(
            meta["link_base_url"], short_code, link.decode_fragment(meta["fragment"].reveal())
        )
    )


def _create(session: Session, posting: Posting, *, unclear: bool) -> CreatedShare:
    """Send the share.

    Send it again as a new share without a wrap if the credential has no custody level.
    """
    budget = session.start_budget()
    try:
        return call(shares.create(posting.body, posting.key, is_ours=True), budget, unclear=unclear)
    except InvalidRequestError as error:
        wrap_at = posting.meta["wrap_at"]
        refused_wrap = error.error_code == 19 and "item_key_wrap" in error.additional_data
        if not refused_wrap or wrap_at is None or posting.key != posting.meta["idempotency_key"]:
            raise
        session.note_custody(has_custody=False)
        if posting.meta["custody"] != "auto":
            raise
    posting.warnings.append(NO_CUSTODY_LEVEL)
    posting.key = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{posting.key} without wrap"))
    posting.body = shares.without_wrap(posting.body, wrap_at)
    if posting.entry is not None:
        posting.entry.note_new_key(posting.key)
    return call(shares.create(posting.body, posting.key, is_ours=True), budget)


def _expire_without_custody(session: Session, created: CreatedShare) -> None:
    from sealpipe.expire.share import end_share  # custody rarely fails

    try:
        end_share(session, created.short_code)
    except NotFoundError:
        pass  # an earlier attempt to expire it succeeded
    except ServiceError as error:
        outcome_error = OutcomeUnknownError(
            f"the share {created.short_code} lacks the required custody: {error.message}"
        )
        outcome_error.unclear = True
        raise outcome_error from None
    raise CustodyError(
        f"custody was required and the service responded with {created.custody!r}: the "
        f"share {created.short_code} "
        "was expired again, its link was neither printed nor sent"
    )


def _note_response(posting: Posting, created: CreatedShare) -> None:
    if posting.entry is None:
        return
    expires_at = format_optional_time(created.expires_at)
    response = {
        "short_code": created.short_code,
        "expires_at": expires_at,
        "custody": created.custody,
        "replayed": created.replayed,
        "expiry_known": created.expiry_known,
    }
    try:
        posting.entry.note_response(response)
    except StateError as error:
        # The share exists and its link is known. A missing note is harmless: `resume` replays the
        # create.
        posting.warnings.append(error.message)


def _make_entry_meta(
    sealed: SealedShare, job: ShareJob, session: Session, notes: Mapping[str, object]
) -> dict[str, Any]:
    """Return the entry's notes; the journal is sealed, so they may contain secrets."""
    return {
        **session.make_entry_meta("share"),
        "fragment": sealed.fragment,
        "passcode": sealed.passcode,
        "wrap_at": sealed.wrap_at,
        "custody": job.custody,
        "name": job.name,
        "title": job.title,
        "views": job.views,
        "recipients": [list(recipient) for recipient in sealed.recipients],
        "also_to": [target.text for target in job.targets],
        "message_template": job.message_template,
        **notes,
    }
