"""Secure requests: ask for secrets, create, list, read, expire, purge."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sealpipe.calls.shares import create_and_deliver
from sealpipe.flows import Flow, call, outgoing, policy
from sealpipe.flows.request import RequestOptions as RequestOptions
from sealpipe.flows.session import Session
from sealpipe.plugin.outgoing import LITERAL
from sealpipe.secret import Secret, as_secret

if TYPE_CHECKING:  # who shares needs none of these: they are imported where they are called
    from sealpipe.api.models import CreatedRequest, DeletedRequest, Page, RequestInfo, Submissions
    from sealpipe.flows.lookup import PageWalk
    from sealpipe.flows.request.create import SecureRequest
    from sealpipe.flows.request.expire import EndedRequest


def request(session: Session, options: RequestOptions) -> Flow[SecureRequest]:
    """Ask somebody for secrets; `.collect_link` is for them, `.receipt` for `collect`.

    A prompt is `[ID=]PROMPT[:TYPE]` or a `Prompt`. It is sealed to the credential's key (`key="credential"`: nothing
    to store), to a fresh one (`key="new"`: its seed goes to `seed_to`, and `.access_link` opens what is submitted),
    or to a key pair of yours. `passcode` IS sent to the service: it gates the form, and encrypts nothing. `send`
    names channels, `params` what their places stand for. Nothing is written to disk unless `outbox` names a
    folder: then `.delivered()` ends its entry. Raises UsageError, PluginError, ServiceError; PublicKeyMismatchError
    where the service has it under another public key; OutcomeUnknownError has `.outbox_id`; DeliveryError.
    """
    from sealpipe.flows.request import create
    from sealpipe.state.outbox import Outbox

    outbox = None if options.outbox is None else Outbox(Path(options.outbox), session.credential)
    return create_and_deliver(session, create.request(session, options, outbox), resend=False)


def create_request(
    session: Session,
    *,
    title: str,
    public_key: bytes,
    fields: Sequence[tuple[str, str]],
    description: str | None = None,
    expires_at: datetime | None = None,
    max_submissions: int | None = None,
    views: int | None = None,
    passcode: str | Secret | None = None,
    requires_login: bool | None = None,
    requires_mfa: bool | None = None,
    restricted_domains: Sequence[str] | None = None,
    ip_whitelist: Sequence[str] | None = None,
    organization_id: str | None = None,
    idempotency_key: str | None = None,
) -> Flow[CreatedRequest]:
    """Create a secure request under a public key of yours (specification: POST /v1/requests).

    `public_key` is the uncompressed point of 65 bytes; `fields` are pairs of visible prompt and type, such as
    `("Password", "password")`. Without `expires_at` it ends after 30 days. The passcode IS sent: it gates a form
    that the service renders. Repeated under one idempotency key until it is settled. Raises UsageError,
    ServiceError; ProtocolError where the service has it under another public key.
    """
    from sealpipe.api import requests as api
    from sealpipe.wire.keys import public_key as checked  # loads cryptography

    checked(public_key)
    body = api.build_body(
        title=title,
        public_key=public_key,
        fields=fields,
        description=description,
        expires_at=expires_at,
        max_submissions=max_submissions,
        views=views,
        passcode=None if passcode is None else as_secret(passcode),
        requires_login=requires_login,
        requires_mfa=requires_mfa,
        restricted_domains=restricted_domains,
        ip_whitelist=ip_whitelist,
        organization_id=organization_id,
    )
    plan = outgoing.describe_raw(
        session,
        "request",
        labels=tuple((label, kind) for label, kind in fields),
        sources=() if passcode is None else (LITERAL,),
        title=title,
        expires_at=expires_at,
        views=max_submissions,
    )
    work = call(
        api.create(body, str(uuid.uuid4()) if idempotency_key is None else idempotency_key, public_key),
        session.start_budget(),
    )
    return policy.run_under_policy(session, plan, work, _describe_created)


def _describe_created(request: CreatedRequest) -> Mapping[str, object]:
    return {"outcome": "replayed" if request.replayed else "created", "short_code": request.short_code}


def list_requests(
    session: Session, *, page: int = 1, limit: int = 25, status: Literal["expired"] | None = None
) -> Flow[Page[RequestInfo]]:
    """One page of the active requests, newest first (specification: GET /v1/requests). `limit` is at most 100.

    With `status="expired"`, of those that have ended (gaps: both lists).
    """
    from sealpipe.api import requests as api

    return call(api.list_page(page, limit, status), session.start_budget())


def iter_requests(
    session: Session, *, limit: int = 100, status: Literal["expired"] | None = None
) -> PageWalk[RequestInfo]:
    """Every active request (or every one that has ended), page by page, newest first."""
    from sealpipe.flows.lookup import PageWalk

    return PageWalk(
        lambda page: list_requests(session, page=page, limit=limit, status=status), lambda row: row.short_code
    )


def get_request(session: Session, short_code: str) -> Flow[RequestInfo]:
    """A request's metadata (specification: GET /v1/requests/{shortCode}). Raises NotFoundError.

    One that has ended still answers, with `expires_at` and `public_key` None.
    """
    from sealpipe.api import requests as api

    return call(api.get(short_code), session.start_budget())


def list_submissions(session: Session, short_code: str) -> Flow[Submissions]:
    """Everything that was submitted, as ciphertext (specification: GET /v1/requests/{shortCode}/submissions).

    `sealpipe.wire.sealed_box` opens `data` with the request's key pair. Who sent it is not known. Raises NotFoundError.
    """
    from sealpipe.api import requests as api

    return call(api.list_submissions(short_code), session.start_budget())


def delete_request(session: Session, short_code: str) -> Flow[DeletedRequest]:
    """One bare DELETE (specification: DELETE /v1/requests/{shortCode}). You want `expire_request`.

    An active request expires; one that has expired is removed for good, WITH ITS SUBMISSIONS. So it is sent once,
    whatever comes back, and never repeated; after OutcomeUnknownError, look with `get_request` and do not call this
    again.
    """
    from sealpipe.api import requests as api

    plan = outgoing.describe_ending(session, "purge", "request", short_code)
    work = call(api.delete(short_code), session.start_budget(), max_tries=1)
    return policy.run_under_policy(session, plan, work, lambda done: {"outcome": done.outcome})


def expire_request(session: Session, short_code: str, *, keep: str | Path | None = None) -> Flow[EndedRequest]:
    """End a request now; its submissions stay (DESIGN 6.4, rule D). Safe to call again, at any time.

    Reads every submission first, sends at most one DELETE, and only to a request that is surely active; then reads
    what came late. `keep` names a folder where the ciphertext of the submissions is kept, and where a call that
    was killed leaves what the next one must know: a DELETE may be under way, and a second one would destroy. Without
    it nothing is written to disk, the submissions are in the result, and only calls in this process know of each
    other. Raises NotFoundError, OutcomeUnknownError (only looked again, and still not known), DeliveryError (it has
    ended, and what came late could not be read or kept), StateError.
    """
    from sealpipe.flows.request import expire as expiring

    return expiring.expire_request(session, short_code, None if keep is None else Path(keep))


def purge_request(
    session: Session, short_code: str, *, confirm: str, keep: str | Path | None = None
) -> Flow[EndedRequest]:
    """Destroy a request and its submissions at the service, for good. `confirm` must be the short code again.

    An active request is expired first, as by `expire_request`, and the ciphertext is kept in the same way.
    Raises UsageError where `confirm` differs, and what `expire_request` raises.
    """
    from sealpipe.flows.request import purge as purging

    return purging.purge_request(session, short_code, confirm, None if keep is None else Path(keep))
