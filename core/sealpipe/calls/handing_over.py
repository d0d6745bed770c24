"""What somebody hands over: asking for it, and collecting it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from sealpipe.flows.session import Session
from sealpipe.flows.steps import Flow
from sealpipe.secret import Secret

if TYPE_CHECKING:  # who shares needs none of these: they are imported where they are called
    from sealpipe.flows.collect.key import OpensWith
    from sealpipe.flows.collect.options import After
    from sealpipe.flows.collect.result import Collected, OnProgress
    from sealpipe.flows.request.create import SecureRequest
    from sealpipe.plugin import Mode
    from sealpipe.prompts import Prompt
    from sealpipe.state.receipt import Receipt, RequestKey
    from sealpipe.wire.keys import KeyPair

_THIRTY_DAYS = timedelta(days=30)


def request(
    session: Session,
    prompts: Sequence[Prompt | str],
    *,
    title: str | None = None,
    description: str | None = None,
    expires_in: timedelta | str | None = _THIRTY_DAYS,
    expires_at: datetime | None = None,
    max_submissions: int | None = None,
    views: int | None = None,
    passcode: str | Secret | None = None,
    key: RequestKey | KeyPair = "credential",
    seed_to: str | None = None,
    requires_login: bool | None = None,
    requires_mfa: bool | None = None,
    restricted_domains: Sequence[str] | None = None,
    ip_whitelist: Sequence[str] | None = None,
    organization_id: str | None = None,
    send: Sequence[str] = (),
    params: Mapping[str, str] | None = None,
    outbox: str | Path | None = None,
) -> Flow[SecureRequest]:
    """Ask somebody for secrets; `.collect_link` is for them, `.receipt` for `collect`.

    A prompt is `[ID=]PROMPT[:TYPE]` or a `Prompt`. It is sealed to the credential's key (`key="credential"`: nothing
    to store), to a fresh one (`key="new"`: its seed goes to `seed_to`, and `.access_link` opens what is submitted),
    or to a key pair of yours. `passcode` IS sent to the service: it gates the form, and encrypts nothing. `send`
    names channels, `params` what their places stand for. Nothing is written to disk unless `outbox` names a
    folder: then `.delivered()` ends its entry. Raises UsageError, PluginError, ServiceError; PublicKeyMismatchError
    where the service has it under another public key; OutcomeUnknownError has `.outbox_id`; DeliveryError.
    """
    from sealpipe.calls.shares import with_mail
    from sealpipe.flows.request import create as requesting
    from sealpipe.state.outbox import Outbox

    plan = requesting.plan_request(
        prompts,
        title=title,
        description=description,
        expires_in=expires_in,
        expires_at=expires_at,
        max_submissions=max_submissions,
        views=views,
        passcode=passcode,
        key=key,
        seed_to=seed_to,
        requires_login=requires_login,
        requires_mfa=requires_mfa,
        restricted_domains=restricted_domains,
        ip_whitelist=ip_whitelist,
        organization_id=organization_id,
        send=send,
        params=params or {},
    )
    box = None if outbox is None else Outbox(Path(outbox), session.credential)
    return with_mail(session, requesting.request(session, plan, box), resend=False)


def collect(
    session: Session,
    request: str | Receipt,
    *,
    key: OpensWith = "credential",
    wait: timedelta | str | None = None,
    pick: str = "only",
    to: Sequence[str] = (),
    mode: Mode = "create",
    folder: str | Path | None = None,
    after: After = "keep",
    state: str | Path | None = None,
    on_progress: OnProgress | None = None,
) -> Flow[Collected]:
    """Open what was submitted to a request, and store it where it belongs (DESIGN 6.5). Safe to call again.

    `request` is a short code, or a receipt: with it the prompts' ids are known. `key` is `credential` (and the
    previous one), a reference to a seed or an access link, a `Secret` that is one, or a key pair. `to` names sinks,
    `folder` takes each submission as a folder of files. `after="expire"` ends the request once every place is
    confirmed. Nothing is written to disk unless `state` names a folder: there the ciphertext of what could not be
    used is kept. `on_progress` is called with a `Progress` now and then, and awaited where it is asynchronous (with
    `AsyncClient`); what it raises ends the call.

    `.status` is `pending` where nobody has answered yet, `expired` where nobody did. Raises what is wrong with the
    request, and what a sink says; the error's `.collected` has what was got all the same.
    """
    (result,) = yield from collect_each(
        session,
        [request],
        key=key,
        wait=wait,
        pick=pick,
        to=to,
        mode=mode,
        folder=folder,
        after=after,
        state=state,
        on_progress=on_progress,
    )
    error = result.error or next(iter(result.failures), None)
    if error is not None:
        error.collected = result
        raise error
    return result


def collect_each(
    session: Session,
    requests: Sequence[str | Receipt],
    *,
    key: OpensWith = "credential",
    wait: timedelta | str | None = None,
    pick: str = "only",
    to: Sequence[str] = (),
    mode: Mode = "create",
    folder: str | Path | None = None,
    after: After = "keep",
    state: str | Path | None = None,
    on_progress: OnProgress | None = None,
) -> Flow[list[Collected]]:
    """As `collect`, from many requests at once, within the plan's rate: each has its own outcome.

    Raises only what concerns all of them; `.problem()` of each is the error that it would have ended with.
    """
    from sealpipe.flows.collect import poll
    from sealpipe.flows.collect.options import plan_collect

    plan = plan_collect(
        requests,
        key=key,
        wait=wait,
        pick=pick,
        to=to,
        mode=mode,
        folder=folder,
        after=after,
        state=state,
    )
    return poll.collect(session, plan, on_progress)
