"""Finishing what an earlier process left in the outbox (DESIGN 6.1)."""

from __future__ import annotations

from datetime import UTC, datetime

from sealpipe.api.shares import without_wrap
from sealpipe.errors import OutcomeUnknown, StateError
from sealpipe.flows import oversight
from sealpipe.flows.session import Session
from sealpipe.flows.share import Posting, Share, link_of, mail, post
from sealpipe.flows.steps import Flow
from sealpipe.state.entry import Entry
from sealpipe.times import parse_time


def resume(session: Session, entry: Entry) -> Flow[Share]:
    """The share of an open entry: as it was answered before, else by sending the stored bytes once more.

    Raises StateError where the entry belongs to another service, OutcomeUnknown where it is too old to be
    sent again, and whatever sending raises.
    """
    if entry.meta["base_url"] != session.base_url:
        entry.close()
        raise StateError(
            f"outbox entry {entry.id} was made for {entry.meta['base_url']}, not for {session.base_url}",
            remedy="set SEALPIPE_BASE_URL to the address that it was made for",
        )
    if entry.answered is not None:
        return _answered(entry)
    if entry.too_old(datetime.now(UTC)):
        entry.close()
        error = OutcomeUnknown(
            f"outbox entry {entry.id} is older than 23 hours: sending it again could make a second share",
            remedy="look at `sealpipe shares list`, expire what nobody needs, "
            f"then `sealpipe resume {entry.id} --discard` and share anew",
        )
        error.outbox_id = entry.id
        raise error
    posting = Posting(entry.meta, entry.body, entry.key, entry)
    if entry.key != entry.meta["idempotency_key"]:
        posting.body = without_wrap(entry.body, entry.meta["wrap_at"])
    sent = post(session, posting, session.budget(), unclear=True)
    return (yield from oversight.watched(session, oversight.of_entry(entry.meta), sent))


def _answered(entry: Entry) -> Share:
    answer, meta = entry.answered or {}, entry.meta
    return Share(
        link_of(meta, answer["short_code"]),
        answer["short_code"],
        None if answer["expires_at"] is None else parse_time(answer["expires_at"]),
        answer["custody"],
        "replayed" if answer["replayed"] else "created",
        meta["title"],
        (),
        entry,
        mail=mail(meta, entry),
    )
