"""Sends the collect link of an open request once more, unless somebody has submitted.

A reminder is an outbox entry whose response is known: each message is journaled as that of a new
request, and `resume` finishes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import NamedTuple

from sealpipe import actions, policy
from sealpipe.api import requests as api
from sealpipe.api.requests import RequestInfo
from sealpipe.budget import call
from sealpipe.delivery.recipients import DeliveryPlan, Recipient, resolve_recipients
from sealpipe.errors import NoSubmissionError, PolicyError, PublicKeyMismatchError, UsageError
from sealpipe.parsing import format_optional_time
from sealpipe.plugin import OutgoingAction
from sealpipe.request.create import SecureRequest, build_request, describe_outcome
from sealpipe.session import Session
from sealpipe.state.entry import EntryStore
from sealpipe.wire import link


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A request as its receipt or this machine's ledger describes it.

    `public_key` is base64url of 65 bytes. `link` is its collect link; None if that is not known.
    `labels` are prompts and types; without a receipt there are none.
    """

    short_code: str
    public_key: str
    link: str | None = None
    name: str | None = None
    title: str | None = None
    labels: Sequence[tuple[str, str]] = ()


class Answered(NamedTuple):
    """There is nothing to remind of: the request has submissions.

    `is_over`: it accepts no others.
    """

    submissions: int
    is_over: bool


def remind(
    session: Session, request: OpenRequest, plan: DeliveryPlan, outbox: EntryStore
) -> SecureRequest | Answered:
    """Prepare a reminder: its entry is open, and `deliver` sends its messages.

    Nothing if there are submissions.

    Raises NoSubmissionError if the request has expired, PublicKeyMismatchError if submissions would
    be sealed to another key, UsageError if the link is not at the address of the settings, and what
    policies and channels raise.
    """
    session.check_clear(request.title)
    base = _find_base(session, request)
    budget = session.start_budget()
    info = call(api.get(request.short_code), budget)
    if info.public_key not in (None, request.public_key):
        raise _make_mismatch_error(request.short_code)
    listed = call(api.list_submissions(request.short_code), budget)
    if listed.items or listed.skipped:
        return Answered(listed.total, info.has_ended)
    if info.has_ended:
        raise NoSubmissionError(
            f"request {request.short_code} has expired without a submission: nothing was sent"
        )
    describe = partial(describe_reminder, session, request.short_code, request.title, base, plan)
    policy.check_policies(session, describe)
    recipients = resolve_recipients(plan, session.registry, {})
    session.check_clear(*(each.address for each in recipients))
    action = describe(recipients, tuple(request.labels), info.expires_at)

    def work(session: Session) -> SecureRequest:
        return _store(session, request, base, info, recipients, action, outbox)

    return policy.run_under_policy(session, action, work, describe_outcome)


def describe_reminder(
    session: Session,
    short_code: str,
    title: str | None,
    link_base_url: str,
    delivery: DeliveryPlan,
    recipients: Sequence[Recipient] | None = None,
    labels: tuple[tuple[str, str], ...] = (),
    expires_at: datetime | None = None,
) -> OutgoingAction:
    """Describe a request whose link is sent once more.

    Without `recipients`, before anything is read.
    """
    action = actions.describe_new(session, "request", (), delivery, title)
    action = action._replace(short_codes=(short_code,), link_address=link_base_url, resumed=True)
    if recipients is None:
        return action._replace(complete=False)
    return actions.with_recipients(session, action, recipients)._replace(
        labels=labels, expires_at=expires_at
    )


def _find_base(session: Session, request: OpenRequest) -> str:
    """Return the address of the request's link.

    Whoever can edit a receipt must not choose where a submitter is sent: PolicyError if this
    machine fixes another address, UsageError if the settings have another one.
    """
    if request.link is None:
        return session.link_base_url
    base, _ = link.split_collect_link(request.link)
    if base != session.link_base_url:
        verb = "fixes" if session.fixed_link else "has"
        raise (PolicyError if session.fixed_link else UsageError)(
            f"the link of request {request.short_code} begins with {base}, and this machine {verb} "
            f"{session.link_base_url}: nothing was sent",
            remedy="create a new request"
            if session.fixed_link
            else (
                "check that nobody changed the receipt; if that address is right, set "
                "SEALPIPE_LINK_BASE_URL to it"
            ),
        )
    return base


def _make_mismatch_error(short_code: str) -> PublicKeyMismatchError:
    error = PublicKeyMismatchError(
        f"the service shows {short_code} with another public key than it was created with: "
        "submissions to that key "
        "could not be decrypted",
        remedy="do not use its link any more: expire it, and create a new request",
    )
    error.short_code = short_code
    return error


def _store(
    session: Session,
    request: OpenRequest,
    base: str,
    info: RequestInfo,
    recipients: Sequence[Recipient],
    action: OutgoingAction,
    outbox: EntryStore,
) -> SecureRequest:
    """Journal the reminder before any of its messages is sent."""
    expires_at = format_optional_time(info.expires_at)
    response = {"short_code": request.short_code, "expires_at": expires_at, "replayed": True}
    meta = {
        **session.make_entry_meta("request"),
        "link_base_url": base,
        "is_reminder": True,
        "response": response,
        "public_key": request.public_key,
        "key": None,
        "seed": None,
        "prompts": (),
        "passcode": None,
        "name": request.name,
        "title": request.title,
        "views": None,
        "recipients": [list(each) for each in recipients],
        "message_template": None,
        "overseen": actions.to_entry_note(action),
    }
    entry = outbox.add(meta, b"")
    return build_request(meta, response, entry)
