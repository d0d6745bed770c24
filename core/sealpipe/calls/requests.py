"""Calls about requests and submissions: ask for secrets, create, list, read, collect, expire, purge."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sealpipe.api import requests as api
from sealpipe.calls.shares import create_and_deliver
from sealpipe.flows import call, outgoing, policy
from sealpipe.flows.collect.options import CollectEachOptions as CollectEachOptions
from sealpipe.flows.collect.options import CollectOneOptions as CollectOneOptions
from sealpipe.flows.request import RequestOptions as RequestOptions
from sealpipe.flows.session import Session
from sealpipe.plugin.context import LITERAL

if TYPE_CHECKING:  # imported by the calls that need them
    from sealpipe.api.pages import Page
    from sealpipe.api.requests import CreatedRequest, DeletedRequest, RequestInfo, Submissions
    from sealpipe.flows.collect import CollectResult
    from sealpipe.flows.lookup import PageWalk
    from sealpipe.flows.request.create import SecureRequest
    from sealpipe.flows.request.expire import EndedRequest


def request(session: Session, options: RequestOptions) -> SecureRequest:
    """Ask a submitter for secrets: send them `.collect_link`, and pass `.receipt` to `collect`.

    A prompt is `[ID=]PROMPT[:TYPE]` or a `Prompt`. Submissions are sealed to the credential's key
    (`key="credential"`: nothing to store), to a new key (`key="new"`: `seed_to` stores its seed, and `.access_link`
    opens the submissions), or to your own key pair. `passcode` IS sent to the service: it protects the form, and
    encrypts nothing. `send` names channels; `params` are the values of their placeholders. Nothing is written to disk
    unless `outbox` names a folder: then `.delivered()` removes its entry. Raises UsageError, PluginError, ServiceError,
    DeliveryError; PublicKeyMismatchError if the service stored another public key; OutcomeUnknownError, which has
    `.outbox_id`.
    """
    from sealpipe.flows.request import create
    from sealpipe.state.outbox import Outbox

    outbox = None if options.outbox is None else Outbox(Path(options.outbox), session.credential)
    return create_and_deliver(session, create.request(session, options, outbox), resend=False)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class CreateRequestOptions(api.RequestMembers):
    """The arguments of `create_request`."""

    idempotency_key: str | None = None


def create_request(session: Session, options: CreateRequestOptions) -> CreatedRequest:
    """Create a request for your own public key (specification: POST /v1/requests).

    `public_key` is the uncompressed point (65 bytes); `fields` are pairs of visible prompt and type, such as
    `("Password", "password")`. Without `expires_at` it expires after 30 days. The passcode IS sent: it protects the
    form, which the service renders. Retried under one idempotency key until the outcome is known. Raises UsageError,
    ServiceError; ProtocolError if the service stored another public key.
    """
    from sealpipe.wire.keys import public_key as checked  # loads cryptography

    checked(options.public_key)
    body = api.build_body(options)
    plan = outgoing.describe_raw(
        session,
        "request",
        labels=tuple((label, kind) for label, kind in options.fields),
        sources=() if options.passcode is None else (LITERAL,),
        title=options.title,
        expires_at=options.expires_at,
        views=options.max_submissions,
    )
    key = str(uuid.uuid4()) if options.idempotency_key is None else options.idempotency_key

    def work(session: Session) -> CreatedRequest:
        return call(api.create(body, key, options.public_key), session.start_budget())

    return policy.run_under_policy(session, plan, work, _describe_created)


def _describe_created(request: CreatedRequest) -> Mapping[str, object]:
    return {"outcome": "replayed" if request.replayed else "created", "short_code": request.short_code}


def list_requests(
    session: Session, *, page: int = 1, limit: int = 25, status: Literal["expired"] | None = None
) -> Page[RequestInfo]:
    """List one page of active requests, newest first (specification: GET /v1/requests). `limit` is at most 100.

    With `status="expired"`, lists expired requests; not every service supports this.
    """
    return call(api.list_page(page, limit, status), session.start_budget())


def iter_requests(
    session: Session, *, limit: int = 100, status: Literal["expired"] | None = None
) -> PageWalk[RequestInfo]:
    """Iterate over all active requests (or all expired ones), page by page, newest first."""
    from sealpipe.flows.lookup import PageWalk

    return PageWalk(
        lambda page: list_requests(session, page=page, limit=limit, status=status), lambda row: row.short_code
    )


def get_request(session: Session, short_code: str) -> RequestInfo:
    """Get a request's metadata (specification: GET /v1/requests/{shortCode}). Raises NotFoundError.

    For an expired request, `expires_at` and `public_key` are None.
    """
    return call(api.get(short_code), session.start_budget())


def list_submissions(session: Session, short_code: str) -> Submissions:
    """List all submissions, as ciphertext (specification: GET /v1/requests/{shortCode}/submissions).

    `sealpipe.wire.sealed_box` opens `data` with the request's key pair. Submitters are not authenticated. Raises
    NotFoundError.
    """
    return call(api.list_submissions(short_code), session.start_budget())


def delete_request(session: Session, short_code: str) -> DeletedRequest:
    """Send a single DELETE (specification: DELETE /v1/requests/{shortCode}). Prefer `expire_request`.

    DELETE expires an active request, and removes an expired one for good, WITH ITS SUBMISSIONS. So it is sent once and
    never retried. After OutcomeUnknownError, check with `get_request`; do not call this again.
    """
    plan = outgoing.describe_ending(session, "purge", "request", short_code)

    def work(session: Session) -> DeletedRequest:
        return call(api.delete(short_code), session.start_budget(), max_tries=1)

    return policy.run_under_policy(session, plan, work, lambda done: {"outcome": done.outcome})


def expire_request(session: Session, short_code: str, *, keep: str | Path | None = None) -> EndedRequest:
    """Expire a request now; its submissions stay. Safe to call again at any time.

    A second DELETE would remove the submissions. So this reads all submissions first, sends at most one DELETE, and
    only while the request is certainly active; then it reads late submissions. `keep` names a folder that stores the
    ciphertext, and the state of a call that was killed while its DELETE was on its way. Without it, nothing is written
    to disk, the result has the submissions, and only calls in this process know about each other. Raises
    NotFoundError, StateError; OutcomeUnknownError if the outcome is still unknown after another read; DeliveryError if
    the request is expired, but late submissions could not be read or stored.
    """
    from sealpipe.flows.request import expire as expiring

    return expiring.expire_request(session, short_code, None if keep is None else Path(keep))


def purge_request(session: Session, short_code: str, *, confirm: str, keep: str | Path | None = None) -> EndedRequest:
    """Delete a request and its submissions from the service, for good. `confirm` must repeat the short code.

    Expires an active request first, as `expire_request` does, and stores the ciphertext in the same way. Raises
    UsageError if `confirm` differs, and the errors of `expire_request`.
    """
    from sealpipe.flows.request import purge as purging

    return purging.purge_request(session, short_code, confirm, None if keep is None else Path(keep))


def collect(session: Session, options: CollectOneOptions) -> CollectResult:
    """Decrypt the submissions of a request, and store them in sinks. Safe to call again.

    `request` is a short code, or a receipt, which knows the prompts' ids. `key` is `credential` (the previous one is
    tried, too), a reference to a seed or an access link, a `Secret` that holds one, or a key pair. `to` names sinks;
    `folder` gets each submission as a folder of files. `after="expire"` expires the request once every write is
    confirmed. Nothing is written to disk unless `state` names a folder: it stores the ciphertext of submissions that
    cannot be used. `on_progress` is called with a `Progress` (and awaited, with `AsyncClient`, if it is asynchronous);
    an exception that it raises ends the call.

    `.status` is `pending` if there is no submission yet, `expired` if there will be none. Raises CollectError,
    ServiceError or PluginError; the error's `.collected` has what was collected before it.
    """
    from sealpipe.flows.collect import poll

    (result,) = poll.collect(session, options)
    error = result.error or next(iter(result.failures), None)
    if error is not None:
        error.collected = result
        raise error
    return result


def collect_each(session: Session, options: CollectEachOptions) -> list[CollectResult]:
    """Collect from many requests at once, within the plan's rate limit. Each has its own result.

    Raises only errors that concern all requests; `.problem()` of a result is the error that `collect` would raise.
    """
    from sealpipe.flows.collect import poll

    return poll.collect(session, options)
