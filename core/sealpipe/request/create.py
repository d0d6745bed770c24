"""A request from its job to its collect link. Publishing the link is left to the caller.

The body is journaled before it is sent, and every try sends the same bytes. If the response is lost
for good, the service's list shows whether a request with a fresh key exists: no other request has
that key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Literal, NamedTuple

from sealpipe import actions, policy
from sealpipe.api import requests as api
from sealpipe.api.requests import CreatedRequest
from sealpipe.budget import Budget, call
from sealpipe.delivery.recipients import Recipient, resolve_recipients
from sealpipe.delivery.send import Deliveries
from sealpipe.errors import Note, PublicKeyMismatchError, SealpipeError, ServiceError, StateError
from sealpipe.lookup import find_created_request
from sealpipe.parsing import format_optional_time, parse_time
from sealpipe.plugin import OutgoingAction
from sealpipe.prompts import Prompt
from sealpipe.request.options import ChosenKey, RequestJob, choose_key, store_seed
from sealpipe.requirements import check_needs
from sealpipe.secret import Secret
from sealpipe.session import Session
from sealpipe.sources.passcode import resolve_passcode
from sealpipe.sources.resolve import Cache
from sealpipe.state.entry import Entry, EntryStore, JournaledLink, keep_entry_on_error, settle_entry
from sealpipe.state.receipt import Receipt, RequestKey
from sealpipe.wire import link
from sealpipe.wire.encoding import decode_base64url, encode_base64url


@dataclass(slots=True)
class SecureRequest(JournaledLink):
    """A request that exists.

    The collect link holds no key: anyone with it can submit, and read nothing.

    `public_key` is base64url of 65 bytes. `access_link` opens every submission, so it is a secret;
    only a fresh key has one. `seed` is the reference to a fresh key's seed, if that was stored.
    """

    kind: ClassVar[str] = "request"

    collect_link: str
    short_code: str
    expires_at: datetime | None
    public_key: str
    key: RequestKey
    prompts: tuple[Prompt, ...]
    outcome: Literal["created", "replayed", "reminded"]
    title: str | None = None
    seed: str | None = None
    name: str | None = None
    access_link: Secret | None = field(default=None, repr=False)
    warnings: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    deliveries: Deliveries | None = field(default=None, repr=False)
    """The messages to send, with their states; None if there are none."""
    expiry_known: bool = True
    """Whether the service said when the request expires; if not, `expires_at` is None, too."""

    @property
    def link(self) -> Secret:
        """The link that its recipients get: the collect link."""
        return Secret(self.collect_link)

    @property
    def receipt(self) -> Receipt:
        """The receipt for collecting, with the collect link. No secret."""
        known = (
            self.title,
            self.seed,
            self.name,
            self.collect_link,
            (self.entry and self.entry.run) or None,
        )
        return Receipt(
            self.short_code, self.public_key, self.prompts, self.key, self.expires_at, *known
        )


def request(
    session: Session, job: RequestJob, outbox: EntryStore | None = None, **notes: object
) -> SecureRequest:
    """Create a request.

    With an outbox, the entry is open until `delivered()`; `notes` are added to it.
    """
    prepared = _prepare(session, job)

    def work(session: Session) -> SecureRequest:
        return _store_and_post(session, prepared, outbox, notes)

    return policy.run_under_policy(session, prepared.action, work, describe_outcome)


class PlannedRequest(NamedTuple):
    """What a dry run finds out."""

    body_size: int
    """In bytes."""
    recipients: tuple[Recipient, ...]


def plan_dry_run(session: Session, job: RequestJob) -> PlannedRequest:
    """Do everything but store and send, policies included, for `request --dry-run`."""
    prepared = _prepare(session, job)
    policy.check_policies(session, lambda: prepared.action)
    return PlannedRequest(
        len(_build_body(job, prepared.key, prepared.passcode)), prepared.recipients
    )


def describe_request(
    session: Session, job: RequestJob, recipients: Sequence[Recipient] | None = None
) -> OutgoingAction:
    """Describe a request; without `recipients`, before anything is read."""
    action = actions.describe_new(session, "request", (), job.delivery, job.title, job.passcode)
    seed = () if job.seed_target is None else (job.seed_target.ref.name,)
    action = action._replace(
        sinks=actions.identify_all(session, "sink", seed), views=job.max_submissions
    )
    if recipients is None:
        return action._replace(complete=False)
    labels = tuple((each.text, each.type) for each in job.prompts)
    return actions.with_recipients(session, action, recipients)._replace(
        labels=labels, expires_at=job.expires_at
    )


def _prepare(session: Session, job: RequestJob) -> _PreparedRequest:
    """Fetch and check everything that the job names. Nothing is stored or sent."""
    session.check_clear(job.name, job.title, job.description, *(each.text for each in job.prompts))
    policy.check_policies(session, lambda: describe_request(session, job))
    if len(job.needs) > 1:
        check_needs(session.registry, job.needs)
    cache: Cache = {}
    recipients: tuple[Recipient, ...] = ()
    if job.delivery is not None:
        recipients = resolve_recipients(job.delivery, session.registry, cache)
    passcode: Secret | None = None
    if job.passcode is not None:
        passcode = resolve_passcode(job.passcode, session.registry, cache)
    session.check_clear(
        None if passcode is None else passcode.reveal(), *(each.address for each in recipients)
    )
    key = choose_key(job, session)
    action = describe_request(session, job, recipients)
    return _PreparedRequest(job, key, passcode, recipients, action)


def describe_outcome(request: SecureRequest) -> Mapping[str, object]:
    """Return what observers see of a created request."""
    return {"outcome": request.outcome, "short_code": request.short_code}


class _PreparedRequest(NamedTuple):
    """A job, with everything that they refer to fetched and checked."""

    job: RequestJob
    key: ChosenKey
    passcode: Secret | None
    recipients: tuple[Recipient, ...]
    action: OutgoingAction


def _store_and_post(
    session: Session,
    prepared: _PreparedRequest,
    outbox: EntryStore | None,
    notes: Mapping[str, object],
) -> SecureRequest:
    """Store the seed of a fresh key before anyone can submit, journal the request, and post it."""
    job = prepared.job
    if outbox is not None:
        outbox.prepare()  # before a seed is stored: this may fail
    chosen = store_seed(job, session, prepared.key)
    try:
        body = _build_body(job, chosen, prepared.passcode)
        meta = _make_entry_meta(prepared, chosen, session, notes)
        entry: Entry | None = None
        if outbox is not None:
            entry = outbox.add(meta, body)
        request = post(session, meta, body, entry, session.start_budget())
    except SealpipeError as error:
        if job.seed_target is not None and not (isinstance(error, ServiceError) and error.unclear):
            location = job.seed_target.text
            error.add_note(
                Note(
                    f"a seed was stored in {location}, and nothing is sealed to its key: "
                    "remove it there"
                )
            )
        raise
    if job.key == "new":
        request.access_link = Secret(
            link.access_link(session.link_base_url, request.short_code, bytes(chosen.pair.seed))
        )
    return request


def post(
    session: Session,
    meta: Mapping[str, Any],
    body: bytes | bytearray,
    entry: Entry | None,
    budget: Budget,
    *,
    unclear: bool = False,
) -> SecureRequest:
    """Send the stored bytes until the outcome is known, and record it.

    With `unclear`, they may have been sent.
    """
    with keep_entry_on_error(entry), settle_entry(entry, unclear=unclear):
        key = decode_base64url(meta["public_key"])
        try:
            created = call(
                api.create(bytes(body), meta["idempotency_key"], key), budget, unclear=unclear
            )
        except PublicKeyMismatchError:
            raise  # it exists, and cannot be used
        except ServiceError as error:
            if not error.unclear:
                raise
            created = find_created_request(session, meta, error)
        if entry is not None:
            _note_response(entry, created)
    return build_request(meta, _to_response(created), entry)


def resume(session: Session, entry: Entry) -> SecureRequest:
    """Return the request of an open entry: as recorded, or by sending the stored bytes again."""
    if entry.response is not None:
        return build_request(entry.meta, entry.response, entry)
    return post(session, entry.meta, entry.body, entry, session.start_budget(), unclear=True)


def _build_body(job: RequestJob, chosen: ChosenKey, passcode: Secret | None) -> bytes:
    return api.build_body(
        api.RequestMembers(
            title=job.title,
            public_key=chosen.pair.public_key,
            fields=[(each.text, each.type) for each in job.prompts],
            description=job.description,
            expires_at=job.expires_at,
            max_submissions=job.max_submissions,
            views=job.views,
            passcode=passcode,
            requires_login=job.requires_login,
            requires_mfa=job.requires_mfa,
            restricted_domains=job.restricted_domains,
            ip_whitelist=job.ip_whitelist,
            organization_id=job.organization_id,
        )
    )


def _make_entry_meta(
    prepared: _PreparedRequest, chosen: ChosenKey, session: Session, notes: Mapping[str, object]
) -> dict[str, Any]:
    """Return the entry's notes, without the seed."""
    job = prepared.job
    return {
        **session.make_entry_meta("request"),
        "public_key": encode_base64url(chosen.pair.public_key),
        "key": job.key,
        "seed": chosen.seed,
        "prompts": [list(each) for each in job.prompts],
        "passcode": prepared.passcode,
        "name": job.name,
        "title": job.title,
        "views": None,
        "recipients": [list(recipient) for recipient in prepared.recipients],
        "message_template": None,
        "overseen": actions.to_entry_note(prepared.action),
        **notes,
    }


def _to_response(created: CreatedRequest) -> dict[str, Any]:
    expires_at = format_optional_time(created.expires_at)
    return {
        "short_code": created.short_code,
        "expires_at": expires_at,
        "replayed": created.replayed,
        "expiry_known": created.expiry_known,
    }


def _note_response(entry: Entry, created: CreatedRequest) -> None:
    with suppress(StateError):  # harmless: without the note, `resume` replays the create
        entry.note_response(_to_response(created))


def build_request(
    meta: Mapping[str, Any], response: Mapping[str, Any], entry: Entry | None
) -> SecureRequest:
    """Build the request from an entry's notes and a recorded response."""
    code, expiry = response["short_code"], response["expires_at"]
    return SecureRequest(
        link.collect_link(meta["link_base_url"], code),
        code,
        None if expiry is None else parse_time(expiry),
        meta["public_key"],
        meta["key"],
        tuple(Prompt(*row) for row in meta["prompts"]),
        "reminded"
        if meta.get("is_reminder")
        else "replayed"
        if response["replayed"]
        else "created",
        meta["title"],
        meta["seed"],
        meta.get("name"),
        remarks=_describe_remarks(meta),
        entry=entry,
        deliveries=actions.load_deliveries(meta, entry),
        expiry_known=response.get("expiry_known", True),
    )


def _describe_remarks(meta: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the remarks about a request, the same in every process that finishes it."""
    remarks = []
    if meta["passcode"]:
        remarks.append(
            "the passcode was sent to the service: it gates the form, and encrypts nothing"
        )
    if meta["seed"]:
        remarks.append(f"the seed of its key is {meta['seed']}")
    return tuple(remarks)
