"""Finish what an earlier process left in the outbox."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from sealpipe.api.shares import without_wrap
from sealpipe.errors import OutcomeUnknownError, PolicyError, StateError
from sealpipe.flows import Do, Flow, outgoing, policy
from sealpipe.flows.session import Session
from sealpipe.flows.share.post import Posting, Share, build_link, post, warn_of_custody
from sealpipe.plugin import OutgoingAction
from sealpipe.state.entry import Entry, keep_entry_on_error
from sealpipe.values import parse_time

if TYPE_CHECKING:
    from sealpipe.flows.request.create import SecureRequest


def resume(session: Session, entry: Entry, *, resend: bool = False) -> Flow[Share | SecureRequest]:
    """Finish an open entry: return its share or request, as recorded or by sending the same bytes again.

    `resend`: a write that may be in a sink that cannot be read back is repeated. Raises StateError if the entry belongs
    to another service, OutcomeUnknownError if it is too old to be sent again, and whatever sending raises.
    """
    if entry.meta["base_url"] != session.base_url:
        entry.close()
        raise StateError(
            f"outbox entry {entry.id} was made for {entry.meta['base_url']}, not for {session.base_url}",
            remedy="set SEALPIPE_BASE_URL to the address that it was made for",
        )
    if session.fixed_link and entry.meta["link_base_url"] != session.link_base_url:
        entry.close()
        raise PolicyError(
            f"outbox entry {entry.id} was made for links to {entry.meta['link_base_url']}, and this machine fixes "
            f"{session.link_base_url}",
            remedy=f"drop it with `sealpipe resume {entry.id} --discard`, and create it again",
        )
    finish = _FINISH[entry.meta["kind"]]
    if entry.response is None:
        _refuse_old(entry)
    work: Flow[Any] = finish(session, entry, resend)
    if not session.policy_hooks:
        unseen: Share | SecureRequest = yield from work
        return unseen
    with keep_entry_on_error(entry):
        leaving: OutgoingAction = yield Do(partial(outgoing.describe_entry, session, entry.meta))
        created: Share | SecureRequest = yield from policy.run_under_policy(session, leaving, work, _describe_outcome)
        return created


def _describe_outcome(result: Share | SecureRequest) -> Mapping[str, object]:
    return {"outcome": result.outcome, "short_code": result.short_code}


def _refuse_old(entry: Entry) -> None:
    if entry.is_too_old(datetime.now(UTC)):
        entry.close()
        error = OutcomeUnknownError(
            f"outbox entry {entry.id} is older than 23 hours: sending it again could make a second one",
            remedy=f"check `sealpipe {entry.meta['kind']}s list`, expire what you do not need, "
            f"then `sealpipe resume {entry.id} --discard` and create it again",
        )
        error.outbox_id = entry.id
        raise error


def _share(session: Session, entry: Entry, resend: bool) -> Flow[Share]:  # noqa: FBT001 - as in the table
    if entry.response is not None:
        return _rebuild_share(entry)
    posting = Posting(entry.meta, entry.body, entry.key, entry)
    if entry.key != entry.meta["idempotency_key"]:
        posting.body = without_wrap(entry.body, entry.meta["wrap_at"])
    if entry.meta.get("also_to") and not entry.is_stored:
        from sealpipe.flows.share import store  # most shares are stored nowhere

        with keep_entry_on_error(entry):
            posting.stored = yield from store.write_from_entry(session, entry, resend=resend)
    return (yield from post(session, posting, unclear=True))


def _request(session: Session, entry: Entry, resend: bool) -> Flow[SecureRequest]:  # noqa: ARG001, FBT001 - the same
    from sealpipe.flows.request import create  # most entries are shares

    return (yield from create.resume(session, entry))


_FINISH: Mapping[str, Callable[[Session, Entry, bool], Flow[Share] | Flow[SecureRequest]]] = {
    "share": _share,
    "request": _request,
}


def _rebuild_share(entry: Entry) -> Share:
    response, meta = entry.response or {}, entry.meta
    return Share(
        build_link(meta, response["short_code"]),
        response["short_code"],
        None if response["expires_at"] is None else parse_time(response["expires_at"]),
        response["custody"],
        "replayed" if response["replayed"] else "created",
        meta["title"],
        warn_of_custody(response["custody"], response["short_code"]),
        entry=entry,
        deliveries=outgoing.load_deliveries(meta, entry),
        expiry_known=response.get("expiry_known", True),
    )
