"""Finish what an outbox entry holds.

The same share or request, the same link, and the messages that remain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from sealpipe import actions, policy
from sealpipe.api.shares import without_wrap
from sealpipe.errors import PolicyError, StateError
from sealpipe.parsing import parse_time
from sealpipe.session import Session
from sealpipe.share import post as sharing
from sealpipe.share.post import Share
from sealpipe.state.entry import Entry, keep_entry_on_error, refuse_old_entry

if TYPE_CHECKING:
    from sealpipe.delivery.send import Deliverable
    from sealpipe.request.create import SecureRequest

Created = TypeVar("Created", bound="Deliverable")


def send_messages(session: Session, created: Created, *, resend: bool = False) -> Created:
    """Send the messages of a share or request, if it has any.

    With `resend`, also those that may have arrived.
    """
    if created.deliveries is not None:
        from sealpipe.delivery.send import deliver  # most shares have no messages

        with keep_entry_on_error(created.entry):
            deliver(session, created, resend=resend)
    return created


def finish_entry(session: Session, entry: Entry, *, resend: bool = False) -> Share | SecureRequest:
    """Finish an open entry.

    Return its share or request, as recorded or by sending the same bytes again.

    With `resend`, repeats a write that may have reached a sink that cannot be read back. Raises
    StateError if the entry belongs to another service, OutcomeUnknownError if it is too old to be
    sent again, and the errors of sending.
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
            f"{entry.label} was made for links to {entry.meta['link_base_url']}, and this "
            "machine fixes "
            f"{session.link_base_url}",
            remedy=f"drop it with `{entry.commands.discard}`, and create it again",
        )
    if entry.response is None:
        refuse_old_entry(entry)

    def work(session: Session) -> Share | SecureRequest:
        return _finish(session, entry, resend=resend)

    if not session.policy_hooks:
        return work(session)
    with keep_entry_on_error(entry):
        leaving = actions.describe_entry(session, entry.meta)
        return policy.run_under_policy(session, leaving, work, _describe_outcome)


def _describe_outcome(result: Share | SecureRequest) -> Mapping[str, object]:
    return {"outcome": result.outcome, "short_code": result.short_code}


def _finish(session: Session, entry: Entry, *, resend: bool) -> Share | SecureRequest:
    if entry.meta["kind"] == "request":
        from sealpipe.request import create  # most entries are shares

        return create.resume(session, entry)
    if entry.response is not None:
        return _rebuild_share(entry)
    posting = sharing.Posting(entry.meta, entry.body, entry.key, entry)
    if entry.key != entry.meta["idempotency_key"]:
        posting.body = without_wrap(entry.body, entry.meta["wrap_at"])
    if entry.meta.get("also_to") and not entry.is_stored:
        from sealpipe.sinks import write  # most shares have no target

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
        deliveries=actions.load_deliveries(meta, entry),
        expiry_known=response.get("expiry_known", True),
    )
