"""A request from its plan to its collect link (DESIGN 6.3, rule C); publishing the link is the caller's."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sealpipe.api import requests as api
from sealpipe.api.models import CreatedRequest, RequestInfo
from sealpipe.errors import (
    Note,
    OutcomeUnknownError,
    PublicKeyMismatchError,
    SealpipeError,
    ServiceError,
    StateError,
)
from sealpipe.flows import Do, Flow, outgoing, policy
from sealpipe.flows.journal import settle_entry
from sealpipe.flows.request.key import ChosenKey, choose_key, store_seed
from sealpipe.flows.request.options import RequestPlan, request_from_answer
from sealpipe.flows.request.options import SecureRequest as SecureRequest
from sealpipe.flows.request.options import plan_request as plan_request
from sealpipe.flows.resolve import Cache
from sealpipe.flows.retry import Budget, call
from sealpipe.flows.session import Session
from sealpipe.plugin import OutgoingAction
from sealpipe.secret import Secret
from sealpipe.state.entry import Entry, keep_entry_on_error
from sealpipe.state.outbox import Outbox
from sealpipe.times import format_time
from sealpipe.wire import link
from sealpipe.wire.encoding import decode_base64url, encode_base64url, encoded

if TYPE_CHECKING:
    from sealpipe.flows.deliver.recipients import Recipient

CANDIDATES: Final = 20
"""How many requests are listed that may be the one whose answer was lost."""


def request(session: Session, plan: RequestPlan, outbox: Outbox | None = None, **notes: object) -> Flow[SecureRequest]:
    """The whole way to a collect link. With an outbox the entry is open until `delivered()`; `notes` go into it."""
    session.check_clear(plan.title, plan.description, *(each.text for each in plan.prompts))
    if session.overseers:
        yield from policy.check_policies(session, (yield Do(partial(outgoing.describe_request, session, plan))))
    cache: Cache = {}
    recipients: tuple[Recipient, ...] = ()
    if plan.delivery is not None:
        from sealpipe.flows.deliver.recipients import resolve_recipients  # most requests are sent nowhere

        recipients = yield from resolve_recipients(plan.delivery, session.registry, cache)
    passcode: Secret | None = None
    if plan.passcode is not None:
        from sealpipe.flows.passcode import resolve_passcode  # most requests have none

        passcode = yield from resolve_passcode(plan.passcode, session.registry, cache)
    session.check_clear(None if passcode is None else passcode.reveal(), *map(str, recipients))
    chosen = yield from choose_key(plan, session)
    leaving: OutgoingAction = yield Do(partial(outgoing.describe_request, session, plan, recipients))
    asked = _PreparedRequest(
        plan, chosen, passcode, recipients, outbox, {"overseen": outgoing.to_entry_note(leaving), **notes}
    )
    return (yield from policy.run_under_policy(session, leaving, _store_and_post(session, asked), describe_outcome))


def describe_outcome(made: SecureRequest) -> Mapping[str, object]:
    """What observers are told of what was made."""
    return {"outcome": made.outcome, "short_code": made.short_code}


class _PreparedRequest(NamedTuple):
    """A plan with everything that it names fetched and checked."""

    plan: RequestPlan
    chosen: ChosenKey
    passcode: Secret | None
    recipients: tuple[Recipient, ...]
    outbox: Outbox | None
    notes: Mapping[str, object]


def _store_and_post(session: Session, asked: _PreparedRequest) -> Flow[SecureRequest]:
    """The seed of a fresh key is in its place before anybody can answer."""
    plan, outbox = asked.plan, asked.outbox
    if outbox is not None:
        yield Do(outbox.ready)  # where it cannot be written, no seed is stored for nothing
    chosen = yield from store_seed(plan, session, asked.chosen)
    try:
        body = _build_body(plan, chosen, asked.passcode)
        meta = _entry_meta(asked, chosen, session)
        entry: Entry | None = None
        if outbox is not None:
            entry = yield Do(partial(outbox.add, meta, body))
        made = yield from post(session, meta, body, entry, session.budget())
    except SealpipeError as error:
        if plan.seed_to is not None and not (isinstance(error, ServiceError) and error.unclear):
            place = plan.seed_to.shown
            error.add_note(Note(f"a seed was stored in {place}, and nothing is sealed to its key: remove it there"))
        raise
    if plan.key == "new":
        made.access_link = Secret(link.access_link(session.link_base_url, made.short_code, bytes(chosen.pair.seed)))
    return made


def post(
    session: Session,
    meta: Mapping[str, Any],
    body: bytes | bytearray,
    entry: Entry | None,
    budget: Budget,
    *,
    unclear: bool = False,
) -> Flow[SecureRequest]:
    """Send the stored bytes until the outcome is known, and keep account of it. `unclear`: they were sent before."""
    with keep_entry_on_error(entry), settle_entry(entry, unclear=unclear):
        key = decode_base64url(meta["public_key"])
        try:
            created = yield from call(api.create(bytes(body), meta["idempotency_key"], key), budget, unclear=unclear)
        except PublicKeyMismatchError as error:
            code = encoded(error.short_code)
            error.remedy = f"give nobody its link; end it with `sealpipe requests expire -- {code}`, and ask anew"
            raise
        except ServiceError as error:
            if not error.unclear:
                raise
            created = yield from _find_created(session, meta, error)
        if entry is not None:
            yield Do(partial(_note_answer, entry, created))
    return request_from_answer(meta, _to_answer(created), entry)


def resume(session: Session, entry: Entry) -> Flow[SecureRequest]:
    """The request of an open entry: as it was answered before, else by sending the stored bytes once more."""
    if entry.answered is not None:
        return request_from_answer(entry.meta, entry.answered, entry)
    return (yield from post(session, entry.meta, entry.body, entry, session.budget(), unclear=True))


def _find_created(session: Session, meta: Mapping[str, Any], error: ServiceError) -> Flow[CreatedRequest]:
    """Rule C: a fresh key is in no other request, so the list tells; the credential's is in every one of ours."""
    from sealpipe.flows.paging import PageWalk  # most answers arrive

    rows: list[RequestInfo] = []
    budget = session.budget()
    with suppress(ServiceError):
        walk: PageWalk[RequestInfo] = PageWalk(
            lambda page: call(api.list_page(page, 100), budget), lambda row: row.short_code
        )
        while not walk.done:
            rows += [row for row in (yield from walk.next_page()) if row.public_key == meta["public_key"]]
    if meta["key"] == "new" and len(rows) == 1:
        return CreatedRequest(rows[0].short_code, rows[0].expires_at, rows[0].public_key, replayed=True)
    if rows and isinstance(error, OutcomeUnknownError):
        codes = ", ".join(row.short_code for row in rows[:CANDIDATES])
        error.message += f"; if it was made, it is one of these, newest first: {codes}"
        error.args = (error.message,)
    raise error


def _build_body(plan: RequestPlan, chosen: ChosenKey, passcode: Secret | None) -> bytes:
    return api.build_body(
        title=plan.title,
        public_key=chosen.pair.public_key,
        fields=[(each.text, each.type) for each in plan.prompts],
        description=plan.description,
        expires_at=plan.expires_at,
        max_submissions=plan.max_submissions,
        views=plan.views,
        passcode=passcode,
        requires_login=plan.requires_login,
        requires_mfa=plan.requires_mfa,
        restricted_domains=plan.restricted_domains,
        ip_whitelist=plan.ip_whitelist,
        organization_id=plan.organization_id,
    )


def _entry_meta(asked: _PreparedRequest, chosen: ChosenKey, session: Session) -> dict[str, Any]:
    """What the outbox holds beside the body: the seed is not among it."""
    plan = asked.plan
    return {
        "schema": 1,
        "kind": "request",
        "idempotency_key": str(uuid.uuid4()),
        "base_url": session.base_url,
        "link_base_url": session.link_base_url,
        "public_key": encode_base64url(chosen.pair.public_key),
        "key": plan.key,
        "seed": chosen.seed,
        "prompts": [list(each) for each in plan.prompts],
        "passcode": asked.passcode,
        "title": plan.title,
        "views": None,
        "recipients": [list(recipient) for recipient in asked.recipients],
        "message_template": None,
        **asked.notes,
    }


def _to_answer(created: CreatedRequest) -> dict[str, Any]:
    ends = None if created.expires_at is None else format_time(created.expires_at)
    return {
        "short_code": created.short_code,
        "expires_at": ends,
        "replayed": created.replayed,
        "expiry_known": created.expiry_known,
    }


def _note_answer(entry: Entry, created: CreatedRequest) -> None:
    with suppress(StateError):  # without the note, `resume` replays the create: no harm
        entry.note_answer(_to_answer(created))
