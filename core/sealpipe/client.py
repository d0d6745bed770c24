"""`Client`, and `resolve`, which needs no client."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from sealpipe import actions, lookup, policy
from sealpipe.api import account as account_api
from sealpipe.api import requests as requests_api
from sealpipe.api import shares as shares_api
from sealpipe.arguments import checks_arguments
from sealpipe.budget import call
from sealpipe.client_base import connect, open_fields, registry
from sealpipe.config import Config
from sealpipe.expire.share import expire_share
from sealpipe.plugin.context import LITERAL
from sealpipe.resume import finish_entry, send_messages
from sealpipe.secret import Secret, strips_frames
from sealpipe.session import Session, open_session
from sealpipe.share import post
from sealpipe.share.options import plan_share
from sealpipe.state.outbox import Outbox
from sealpipe.wire.fields import Field, hidden

if TYPE_CHECKING:
    from sealpipe.api.account import Access, AccessLog, Capabilities, ShareInfo, Stats
    from sealpipe.api.mcp import Tool, ToolResult
    from sealpipe.api.pages import Page
    from sealpipe.api.requests import CreatedRequest, DeletedRequest, RequestInfo, Submissions
    from sealpipe.api.shares import CreatedShare
    from sealpipe.collect.options import AfterCollect, KeyChoice
    from sealpipe.collect.results import CollectResult, OnProgress
    from sealpipe.delivery.recipients import Params
    from sealpipe.expire.request import EndedRequest
    from sealpipe.expire.share import EndedShare
    from sealpipe.plugin import Mode
    from sealpipe.prompts import Prompt
    from sealpipe.reference import FieldSpec, Reference, Target
    from sealpipe.request.create import SecureRequest
    from sealpipe.share.options import Custody
    from sealpipe.share.post import Share
    from sealpipe.state.entry import Entry
    from sealpipe.state.receipt import Receipt, RequestKey
    from sealpipe.wire.keys import KeyPair

T = TypeVar("T")


class ClientSetup:
    """Base class of both clients: makes and holds the session."""

    @checks_arguments
    def __init__(
        self,
        *,
        api_key: str | Secret,
        base_url: str,
        link_base_url: str,
        service_tag: str | None = None,
        deadline: float | timedelta | str = 60.0,
        ca_file: str | Path | None = None,
        api_key_previous: str | Secret | None = None,
    ) -> None:
        config = Config(os.environ)
        self.session: Session = connect(
            open_session(
                config,
                partial(registry, config=lambda: config.user),
                api_key=api_key,
                base_url=base_url,
                link_base_url=link_base_url,
                service_tag=service_tag,
                deadline=deadline,
                ca_file=ca_file,
                api_key_previous=api_key_previous,
            )
        )

    @classmethod
    @strips_frames
    def from_settings(cls) -> Self:
        """Make a client from SEALPIPE_* variables and the user's config file.

        Raises SettingError.
        """
        from sealpipe.settings_model import load_arguments

        config = Config(os.environ)
        plugins = partial(registry, config=lambda: config.user)
        return cls.from_session(open_session(config, plugins, **load_arguments(config)))

    @classmethod
    def from_session(cls, session: Session) -> Self:
        """Make a client for an existing session, as the command line does."""
        client = cls.__new__(cls)
        client.session = connect(session)
        return client


class Client(ClientSetup):
    """Client of the service for blocking code.

    A context manager; several threads may use one client.

    `api_key` has three parts, or two; `base_url` ends in /v1. `deadline` (seconds) is for one call,
    retries included. `ca_file` is trusted in addition to the system's certificates.
    `api_key_previous` (during a rotation) opens what was sealed to it, and is never sent. Raises
    SettingError.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self.session.close()

    @checks_arguments
    def create_share(
        self,
        *,
        data: str,
        access_token: str,
        passcode_verifier: str | None = None,
        title: str | None = None,
        description: str | None = None,
        expires_at: datetime | None = None,
        views: int | None = None,
        item_key_wrap: str | None = None,
        timed_view: int | None = None,
        notify_on: Sequence[str] | None = None,
        organization_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> CreatedShare:
        """Create a share from ciphertext that you sealed yourself (specification: POST /v1/shares).

        - `data`: the envelope, in standard base64: 44 bytes or more
        - `access_token`: 32 bytes in base64url, derived from the content key
          (`wire.tokens.access_token`)
        - `passcode_verifier`: 32 bytes in base64url, derived from the passcode; None: there is no
          passcode
        - `title`, `description`: texts, which the service can read
        - `expires_at`: when the link expires: a datetime with a time zone; None: left to the
          service
        - `views`: how often the share can be opened; None: left to the service
        - `item_key_wrap`: the content key sealed for the account's owner, in standard base64: 142
          bytes; None: no custody
        - `timed_view`: how long the page shows the content once it is opened, in seconds; None:
          until the page is closed
        - `notify_on`: the events that the owner gets an email about, as for `share`; None: as the
          account is set
        - `organization_id`: the organisation that the share belongs to
        - `idempotency_key`: 1 to 255 visible ASCII characters, which name this share and no other;
          None: a new UUID

        Retried under one idempotency key until the outcome is known. Raises UsageError, which names
        the argument, and ServiceError. `share` also seals.
        """
        members = shares_api.ShareMembers(
            access_token=access_token,
            passcode_verifier=passcode_verifier,
            title=title,
            description=description,
            expires_at=expires_at,
            views=views,
            item_key_wrap=item_key_wrap,
            timed_view=timed_view,
            notify_on=notify_on,
            organization_id=organization_id,
        )
        body, _ = shares_api.build_body(lambda out: out.extend(data.encode()), members)
        key = str(uuid.uuid4()) if idempotency_key is None else idempotency_key
        plan = actions.describe_raw(
            self.session,
            "share",
            sources=(LITERAL,),
            title=title,
            expires_at=expires_at,
            views=views,
        )

        def work(session: Session) -> CreatedShare:
            return call(shares_api.create(body, key), session.start_budget())

        return policy.run_under_policy(self.session, plan, work, _describe_created)

    @checks_arguments
    def list_shares(
        self, *, page: int = 1, limit: int = 25, status: Literal["expired"] | None = None
    ) -> Page[ShareInfo]:
        """List one page of active shares, newest first (specification: GET /v1/shares).

        `limit` is at most 100.

        With `status="expired"`, lists expired shares, the latest end first; a service that does not
        support this may return the active ones.
        """
        return call(shares_api.list_page(page, limit, status), self.session.start_budget())

    @checks_arguments
    def iter_shares(
        self, *, limit: int = 100, status: Literal["expired"] | None = None
    ) -> Iterator[ShareInfo]:
        """Iterate over all active shares (or all expired ones), page by page, newest first."""
        return _iterate_rows(lookup.walk_shares(self.session, limit, status))

    @checks_arguments
    def get_share(self, short_code: str) -> ShareInfo:
        """Get a share's metadata; uses no view (specification: GET /v1/shares/{shortCode}).

        Raises NotFoundError.
        """
        return call(shares_api.get(short_code), self.session.start_budget())

    @checks_arguments
    def expire_share(self, short_code: str, *, keep: str | Path | None = None) -> EndedShare:
        """Expire a share now (specification: DELETE /v1/shares/{shortCode}).

        Safe to call again at any time.

        `outcome` is `expired`, or `already-expired` if it was expired before. The service responds
        to a second call and to a wrong code alike, with 404 and code 1. So the second call succeeds
        only with proof that the share existed: its metadata, the list of expired shares, or a note
        in the folder `keep`, where each successful call writes one. Without proof, raises
        NotFoundError. Raises OutcomeUnknownError if no try has a known outcome.
        """
        return expire_share(self.session, short_code, _as_path(keep))

    @checks_arguments
    def share(
        self,
        fields: Sequence[Field | FieldSpec | str],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        expires_in: timedelta | str | None = timedelta(hours=72),
        expires_at: datetime | None = None,
        views: int | None = 1,
        passcode: str | Secret | Reference | None = None,
        custody: Custody = "auto",
        timed_view: int | None = None,
        notify_on: Sequence[str] | None = None,
        organization_id: str | None = None,
        outbox: str | Path | None = None,
        passcode_generate: bool = False,
        send: Sequence[Target | str] = (),
        passcode_to: Sequence[Target | str] = (),
        params: Params | None = None,
        message_template: str | None = None,
        also_to: Sequence[Reference | str] = (),
    ) -> Share:
        """Seal fields, given as `Field` or by reference, and share them.

        Only `.link` opens the share.

        - `fields`: what to share: each a `Field`, or a reference such as
          `Root=vault:secret/app#root`
        - `name`: your own name for the share, which the service never gets; it fills `{name}` in
          `also_to`
        - `title`: a title, which the service can read
        - `description`: a description, which the service can read
        - `expires_in`: how long the link works: a timedelta, or text such as `24h`; None: until its
          views are used up
        - `expires_at`: when the link expires: a datetime with a time zone, which overrides
          `expires_in`
        - `views`: how often the share can be opened; None: no limit
        - `passcode`: what the recipient must enter, too, or the reference where it is read
        - `custody`: whether the account's owner can read the share: if possible (`auto`), always
          (`require`), never (`off`)
        - `timed_view`: how long the page shows the content once it is opened, in seconds; None:
          until the page is closed
        - `notify_on`: the events that the owner gets an email about: a list of `viewed`, `denied`
          (a wrong passcode), `expired` and `deleted`; None: as the account is set
        - `organization_id`: the organisation that the share belongs to
        - `outbox`: a folder: then the share survives a kill, and `.delivered()` removes its entry
          once the link is safe; None: nothing is written to disk
        - `passcode_generate`: whether to generate a passcode, which `passcode_to` delivers
        - `send`: the channels that deliver the link, such as `email:{to}`
        - `passcode_to`: the channels that deliver the passcode
        - `params`: the values of placeholders in channels, by name, as references: `{"to":
          "env:RECIPIENT"}`
        - `message_template`: the text of the message that `send` delivers: `{link}` once and, if
          you like, `{title}`, `{expires}` and `{views}`, which are filled in; None: a text that
          explains the link
        - `also_to`: the sinks that store the fields before the share is posted, such as
          `vault:secret/app?mode=merge#password=Password`

        All are checked before anything is sent. `.deliveries` has the state of each message. Raises
        UsageError, PluginError, ServiceError, DeliveryError if a message is not sent;
        OutcomeUnknownError has `.outbox_id`.
        """
        job = plan_share(
            fields,
            name=name,
            title=title,
            description=description,
            expires_in=expires_in,
            expires_at=expires_at,
            views=views,
            passcode=passcode,
            custody=custody,
            timed_view=timed_view,
            notify_on=notify_on,
            organization_id=organization_id,
            passcode_generate=passcode_generate,
            send=send,
            passcode_to=passcode_to,
            params=params,
            message_template=message_template,
            also_to=also_to,
        )
        created = post.share(self.session, job, self._open_outbox(outbox))
        return send_messages(self.session, created)

    @checks_arguments
    def resume(self, entry: Entry, *, resend: bool = False) -> Share | SecureRequest:
        """Finish an entry of an `Outbox` (`outbox.open(id)`): same share or request, same link.

        Sends the remaining messages. With `resend`, also sends those that may have arrived, and
        repeats writes to sinks that cannot be read back. Raises DeliveryError.
        """
        return send_messages(
            self.session, finish_entry(self.session, entry, resend=resend), resend=resend
        )

    @checks_arguments
    def create_request(
        self,
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
    ) -> CreatedRequest:
        """Create a request for your own public key (specification: POST /v1/requests).

        - `title`: a title, which the service can read
        - `public_key`: the key that submissions are sealed to: an uncompressed point on P-256, 65
          bytes
        - `fields`: pairs of visible prompt and type, such as `("Password", "password")`
        - `description`: a description, which the service can read
        - `expires_at`: when the collect link expires: a datetime with a time zone; None: after 30
          days
        - `max_submissions`: how many submissions to accept; None: no limit
        - `views`: how often the form can be opened; None: no limit
        - `passcode`: what submitters must enter. It IS sent: it protects the form, which the
          service renders
        - `requires_login`, `requires_mfa`: whether submitters must sign in, and with a second
          factor; None: no
        - `restricted_domains`: the email domains that submitters must sign in with; None: any
        - `ip_whitelist`: the IP addresses and ranges that submissions may come from; None: any
        - `organization_id`: the organisation that the request belongs to
        - `idempotency_key`: 1 to 255 visible ASCII characters, which name this request and no
          other; None: a new UUID

        Retried under one idempotency key until the outcome is known. Raises UsageError,
        ServiceError; ProtocolError if the service stored another public key. `request` also makes
        the key.
        """
        members = requests_api.RequestMembers(
            title=title,
            public_key=public_key,
            fields=fields,
            description=description,
            expires_at=expires_at,
            max_submissions=max_submissions,
            views=views,
            passcode=passcode,
            requires_login=requires_login,
            requires_mfa=requires_mfa,
            restricted_domains=restricted_domains,
            ip_whitelist=ip_whitelist,
            organization_id=organization_id,
        )
        body = requests_api.build_body(members)
        key = str(uuid.uuid4()) if idempotency_key is None else idempotency_key
        plan = actions.describe_raw(
            self.session,
            "request",
            labels=tuple((label, kind) for label, kind in fields),
            sources=() if passcode is None else (LITERAL,),
            title=title,
            expires_at=expires_at,
            views=max_submissions,
        )

        def work(session: Session) -> CreatedRequest:
            return call(requests_api.create(body, key, public_key), session.start_budget())

        return policy.run_under_policy(self.session, plan, work, _describe_created)

    @checks_arguments
    def list_requests(
        self, *, page: int = 1, limit: int = 25, status: Literal["expired"] | None = None
    ) -> Page[RequestInfo]:
        """List one page of active requests, newest first (specification: GET /v1/requests).

        `limit` is at most 100.

        With `status="expired"`, lists expired requests; not every service supports this.
        """
        return call(requests_api.list_page(page, limit, status), self.session.start_budget())

    @checks_arguments
    def iter_requests(
        self, *, limit: int = 100, status: Literal["expired"] | None = None
    ) -> Iterator[RequestInfo]:
        """Iterate over all active requests (or all expired ones), page by page, newest first."""
        return _iterate_rows(lookup.walk_requests(self.session, limit, status))

    @checks_arguments
    def get_request(self, short_code: str) -> RequestInfo:
        """Get a request's metadata (specification: GET /v1/requests/{shortCode}).

        Raises NotFoundError.

        For an expired request, `expires_at` and `public_key` are None.
        """
        return call(requests_api.get(short_code), self.session.start_budget())

    @checks_arguments
    def list_submissions(self, short_code: str) -> Submissions:
        """List all submissions, as ciphertext.

        Specification: GET /v1/requests/{shortCode}/submissions.

        `sealpipe.wire.sealed_box` opens `data` with the request's key pair. Submitters are not
        authenticated. Raises NotFoundError.
        """
        return call(requests_api.list_submissions(short_code), self.session.start_budget())

    @checks_arguments
    def request(
        self,
        prompts: Sequence[Prompt | str],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        expires_in: timedelta | str | None = timedelta(days=30),
        expires_at: datetime | None = None,
        max_submissions: int | None = None,
        views: int | None = None,
        passcode: str | Secret | Reference | None = None,
        key: RequestKey | KeyPair = "credential",
        seed_to: Reference | str | None = None,
        requires_login: bool | None = None,
        requires_mfa: bool | None = None,
        restricted_domains: Sequence[str] | None = None,
        ip_whitelist: Sequence[str] | None = None,
        organization_id: str | None = None,
        send: Sequence[Target | str] = (),
        params: Params | None = None,
        outbox: str | Path | None = None,
    ) -> SecureRequest:
        """Ask a submitter for secrets: send them `.collect_link`, and pass `.receipt` to `collect`.

        - `prompts`: what to ask for: each a `Prompt`, or text of the form `[ID=]PROMPT[:TYPE]`
        - `name`: your own name for the request, which the service never gets; it fills `{name}` in
          `seed_to`
        - `title`: a title, which the service can read; None: the prompts
        - `description`: a description, which the service can read
        - `expires_in`: how long the collect link works: a timedelta, or text such as `24h`; None:
          left to the service
        - `expires_at`: when the collect link expires: a datetime with a time zone, which overrides
          `expires_in`
        - `max_submissions`: how many submissions to accept; None: no limit
        - `views`: how often the form can be opened; None: no limit
        - `passcode`: what submitters must enter, or the reference where it is read. It IS sent to
          the service: it protects the form, and encrypts nothing
        - `key`: what submissions are sealed to: the credential's key (`credential`: nothing to
          store), a new one (`new`: `seed_to` stores its seed, and `.access_link` opens the
          submissions), or your own key pair
        - `seed_to`: the sink that stores a new key's seed, such as
          `vault:secret/requests/acme#seed`
        - `requires_login`, `requires_mfa`: whether submitters must sign in, and with a second
          factor; None: no
        - `restricted_domains`: the email domains that submitters must sign in with; None: any
        - `ip_whitelist`: the IP addresses and ranges that submissions may come from; None: any
        - `organization_id`: the organisation that the request belongs to
        - `send`: the channels that deliver the collect link, such as `email:{to}`
        - `params`: the values of placeholders in channels, by name, as references: `{"to":
          "env:RECIPIENT"}`
        - `outbox`: a folder: then the request survives a kill, and `.delivered()` removes its
          entry; None: nothing is written to disk

        All are checked before anything is sent. Raises UsageError, PluginError, ServiceError,
        DeliveryError if a message is not sent; PublicKeyMismatchError if the service stored another
        public key; OutcomeUnknownError, which has `.outbox_id`.
        """
        from sealpipe.request import create, options  # most programs only share

        job = options.plan_request(
            prompts,
            name=name,
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
            params=params,
        )
        created = create.request(self.session, job, self._open_outbox(outbox))
        return send_messages(self.session, created)

    @checks_arguments
    def collect(
        self,
        request: str | Receipt,
        *,
        key: KeyChoice = "credential",
        wait: timedelta | str | None = None,
        pick: str = "only",
        to: Sequence[Reference | str] = (),
        mode: Mode = "create",
        folder: str | Path | None = None,
        check: str | None = None,
        after: AfterCollect = "keep",
        state: str | Path | None = None,
        on_progress: OnProgress | None = None,
    ) -> CollectResult:
        """Decrypt the submissions of a request, and store them in sinks. Safe to call again.

        - `request`: a short code, or a receipt, which knows the prompts' ids
        - `key`: what opens submissions: `credential` (the previous one is tried, too), a reference
          to a seed or an access link, a `Secret` that holds one, or a key pair
        - `wait`: how long to wait for a submission: a timedelta, or text such as `15m`; None: poll
          once
        - `pick`: which submission to take: `only`, `newest`, `oldest`, `each`, or a submission's
          short code or marker
        - `to`: the sinks that store it, such as `vault:secret/vendor/acme#password=Staging
          password`
        - `mode`: what to do if a target exists: fail (`create`), overwrite (`replace`) or add keys
          (`merge`)
        - `folder`: the folder that gets each submission as a folder of files
        - `check`: the name of a check in the user's config file: what does not pass it is not
          stored
        - `after`: what to do with the request once every write is confirmed: `keep` it, or `expire`
          it
        - `state`: a folder for the ciphertext of submissions that cannot be used; None: nothing is
          written to disk
        - `on_progress`: a function that is called with a `Progress` (and awaited, with
          `AsyncClient`, if it is asynchronous); an exception that it raises ends the call

        `.status` is `pending` if there is no submission yet, `expired` if there will be none.
        Raises CollectError, ServiceError or PluginError; the error's `.collected` has what was
        collected before it.
        """
        from sealpipe.collect import options, poll  # most programs only share

        plan = options.plan_collect(
            [request],
            key=key,
            wait=wait,
            pick=pick,
            to=to,
            mode=mode,
            folder=folder,
            check=check,
            after=after,
            state=state,
            on_progress=on_progress,
        )
        (result,) = poll.collect(self.session, plan)
        error = result.error or next(iter(result.failures), None)
        if error is not None:
            error.collected = result
            raise error
        return result

    @checks_arguments
    def collect_each(
        self,
        requests: Sequence[str | Receipt],
        *,
        key: KeyChoice = "credential",
        wait: timedelta | str | None = None,
        pick: str = "only",
        to: Sequence[Reference | str] = (),
        mode: Mode = "create",
        folder: str | Path | None = None,
        check: str | None = None,
        after: AfterCollect = "keep",
        state: str | Path | None = None,
        on_progress: OnProgress | None = None,
    ) -> list[CollectResult]:
        """Collect from many requests at once, within the plan's rate limit.

        Each has its own result.

        `requests` are short codes and receipts; the other arguments are those of `collect`, and
        `wait` is for all together. Raises only errors that concern all requests; `.problem()` of a
        result is the error that `collect` would raise.
        """
        from sealpipe.collect import options, poll  # most programs only share

        plan = options.plan_collect(
            requests,
            key=key,
            wait=wait,
            pick=pick,
            to=to,
            mode=mode,
            folder=folder,
            check=check,
            after=after,
            state=state,
            on_progress=on_progress,
        )
        return poll.collect(self.session, plan)

    @checks_arguments
    def delete_request(self, short_code: str) -> DeletedRequest:
        """Send a single DELETE (specification: DELETE /v1/requests/{shortCode}).

        Prefer `expire_request`.

        DELETE expires an active request, and removes an expired one for good, WITH ITS SUBMISSIONS.
        So it is sent once and never retried. After OutcomeUnknownError, check with `get_request`;
        do not call this again.
        """
        plan = actions.describe_ending(self.session, "purge", "request", short_code)

        def work(session: Session) -> DeletedRequest:
            return call(requests_api.delete(short_code), session.start_budget(), max_tries=1)

        return policy.run_under_policy(
            self.session, plan, work, lambda done: {"outcome": done.outcome}
        )

    @checks_arguments
    def expire_request(self, short_code: str, *, keep: str | Path | None = None) -> EndedRequest:
        """Expire a request now; its submissions stay. Safe to call again at any time.

        A second DELETE would remove the submissions. So this reads all submissions first, sends at
        most one DELETE, and only while the request is certainly active; then it reads late
        submissions. `keep` names a folder that stores the ciphertext, and the state of a call that
        was killed while its DELETE was on its way. Without it, nothing is written to disk, the
        result has the submissions, and only calls in this process know about each other. Raises
        NotFoundError, StateError; OutcomeUnknownError if the outcome is still unknown after another
        read; DeliveryError if the request is expired, but late submissions could not be read or
        stored.
        """
        from sealpipe.expire.request import expire_request  # most programs only share

        return expire_request(self.session, short_code, _as_path(keep))

    @checks_arguments
    def purge_request(
        self, short_code: str, *, confirm: str, keep: str | Path | None = None
    ) -> EndedRequest:
        """Delete a request and its submissions from the service, for good.

        `confirm` must repeat the short code.

        Expires an active request first, as `expire_request` does, and stores the ciphertext in the
        same way. Raises UsageError if `confirm` differs, and the errors of `expire_request`.
        """
        from sealpipe.expire.purge import purge_request  # most programs only share

        return purge_request(self.session, short_code, confirm, _as_path(keep))

    @checks_arguments
    def get_stats(self) -> Stats:
        """Get the number of shares, and their views on each of the last 14 days.

        Specification: GET /v1/stats.
        """
        return call(account_api.get_stats(), self.session.start_budget())

    @checks_arguments
    def list_tools(self) -> tuple[Tool, ...]:
        """List the tools of the hosted MCP endpoint (specification: POST /v1/mcp)."""
        from sealpipe import tools  # few programs call tools

        return tools.list_tools(self.session)

    @checks_arguments
    def call_tool(self, name: str, arguments: Mapping[str, Any] | None = None) -> ToolResult:
        """Call a tool of the hosted MCP endpoint once.

        `arguments` are JSON values, as in its `input_schema`.

        Raises MissingScopeError if the key does not have the tool's scope, ToolError if the tool
        fails or does not exist, and OutcomeUnknownError if there is no response: a tool may change
        something, so a call is never repeated.
        """
        from sealpipe import tools  # few programs call tools

        return tools.call_tool(self.session, name, arguments or {})

    @checks_arguments
    def get_capabilities(self) -> Capabilities | None:
        """Get the capabilities of key and plan, or None if the service has no such endpoint."""
        return lookup.find_capabilities(self.session)

    @checks_arguments
    def share_log(
        self,
        short_code: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> AccessLog | None:
        """Get a page of a share's access log (scope `audit:read`), or None if not offered.

        `limit` is at most 100, `cursor` the `next_cursor` of the previous page. `since` and `until`
        have a time zone. Raises NotFoundError.
        """
        page = account_api.get_access_log(
            short_code, limit=limit, cursor=cursor, since=since, until=until
        )
        return call(page, self.session.start_budget())

    @checks_arguments
    def iter_share_log(
        self, short_code: str, *, since: datetime | None = None, until: datetime | None = None
    ) -> Iterator[Access]:
        """Iterate over a share's access log; nothing if the service does not have one."""
        return _iterate_rows(lookup.walk_share_log(self.session, short_code, since, until))

    def _open_outbox(self, folder: str | Path | None) -> Outbox | None:
        return None if folder is None else Outbox(Path(folder), self.session.credential)


def _as_path(folder: str | Path | None) -> Path | None:
    return None if folder is None else Path(folder)


def _describe_created(created: CreatedShare | CreatedRequest) -> Mapping[str, object]:
    return {
        "outcome": "replayed" if created.replayed else "created",
        "short_code": created.short_code,
    }


def _iterate_rows(pages: lookup.PageIterator[T]) -> Iterator[T]:
    next_page = strips_frames(pages.fetch_next)
    while not pages.is_done:
        yield from next_page()


@checks_arguments
def resolve(references: Sequence[str], *, ca_file: str | Path | None = None) -> list[Field[Secret]]:
    """Resolve references, such as `["vault:secret/app/db#user,password"]`, to fields in order.

    Needs no client. Reads every document once, and several stores at the same time. Raises
    ReferenceSyntaxError, SettingError, PluginError.
    """
    with closing(registry(ca_file)) as plugins:
        return [hidden(field) for field in open_fields(references, plugins)]
