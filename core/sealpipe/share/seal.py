"""Seal a share.

Fetch what its job names, limit its expiry, and encrypt it once into the bytes to post.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from sealpipe.api import shares
from sealpipe.errors import PluginError, Remedy, UsageError
from sealpipe.parsing import format_time
from sealpipe.reference import FieldSpec
from sealpipe.requirements import check_needs
from sealpipe.secret import Secret
from sealpipe.session import Session
from sealpipe.share.options import ShareJob
from sealpipe.sources.resolve import Cache, collect_remarks, find_earliest_expiry, resolve
from sealpipe.wire import envelope, fields, link, tokens

if TYPE_CHECKING:
    from sealpipe.delivery.recipients import Recipient
    from sealpipe.sinks.write import SinkWrite


NO_CUSTODY_LEVEL: Final = (
    "the key has no custody level: the share was made without a wrap, only its link can open it"
)


@dataclass(frozen=True, slots=True, eq=False)
class SealedShare:
    """A share ready to post.

    The exact body, where its wrap begins, and the content key for the link.
    """

    body: bytearray = field(repr=False)
    wrap_at: int | None
    fragment: Secret
    passcode: Secret | None
    labels: tuple[tuple[str, str], ...]
    """Each field's label and type."""
    recipients: tuple[Recipient, ...] = ()
    """The recipients of link and passcode; as text, each is `channel:to`."""
    expires_at: datetime | None = None
    """When it expires: as planned, or earlier, with a value that expires. None: never."""
    writes: tuple[SinkWrite, ...] = field(default=(), repr=False)
    """What to write into sinks before it is posted."""
    planned_writes: tuple[str, ...] = ()
    """The same as text, in the sinks' own words."""
    remarks: tuple[str, ...] = ()
    """What sources say about their documents, such as the entropy of a new password; never a
    value.
    """
    warnings: tuple[str, ...] = ()


def seal_share(job: ShareJob, session: Session) -> SealedShare:
    """Fetch what the job names, and seal it. Nothing is stored or sent."""
    if job.custody == "require" and session.credential.custody_secret is None:
        raise UsageError(
            "custody is required and the credential has no custody secret",
            remedy=Remedy(
                "use the whole credential, all three parts, or --custody auto",
                python='use the whole credential, all three parts, or custody="auto"',
            ),
        )
    if len(job.needs) > 1:
        check_needs(session.registry, job.needs)
    typed: tuple[str, ...] = ()
    if any(isinstance(spec, FieldSpec) and spec.ref.name == "text" for spec in job.fields):
        from sealpipe.sources.text_secrets import warn_of_text  # most shares contain no text:

        typed = tuple(warn_of_text(job.fields))
    cache: Cache = {}
    recipients: tuple[Recipient, ...] = ()
    if job.delivery is not None:
        from sealpipe.delivery.recipients import resolve_recipients  # most shares have no recipient

        # Before all else: a wrong recipient must not consume a secret that is created by reading
        # it.
        recipients = resolve_recipients(job.delivery, session.registry, cache)
        session.check_clear(*(each.address for each in recipients))
    writes: tuple[SinkWrite, ...] = ()
    write_notes: tuple[str, ...] = ()
    if job.targets:
        from sealpipe.sinks import write  # most shares have no target

        write.check_targets(session, job.targets)
    fields = resolve(job.fields, session.registry, cache)
    if job.targets:
        writes = write.plan_share_writes(job.targets, fields)
        write_notes = write.describe_plan(session, writes)
    passcode: Secret | None = None
    if job.passcode is not None:
        from sealpipe.sources.passcode import resolve_passcode  # most shares have no passcode

        passcode = resolve_passcode(job.passcode, session.registry, cache)
    session.check_clear(
        *(str(member) for each in fields for member in _list_members_in_clear(each))
    )
    # As a target decodes them.
    stored = (value for each in writes for _, value in each.fields)
    session.check_own(
        *(each.value for each in fields), *stored, "" if passcode is None else passcode
    )
    expires_at, expiry_notes = bound_expiry(job.expires_at, cache)
    sealed = _seal(job, expires_at, fields, passcode, session)
    return replace(
        sealed,
        recipients=recipients,
        expires_at=expires_at,
        remarks=(*typed, *collect_remarks(cache), *expiry_notes),
        writes=writes,
        planned_writes=write_notes,
    )


def _list_members_in_clear(field: fields.Field) -> list[object]:
    """List the other parts of a field.

    Recipients can read all of them, policies and the audit only its label.
    """
    return [member for name, member in field.members().items() if name != "value"]


def _seal(
    job: ShareJob,
    expires_at: datetime | None,
    resolved_fields: Sequence[fields.Field],
    passcode: Secret | None,
    session: Session,
) -> SealedShare:
    warnings = (NO_CUSTODY_LEVEL,) if _is_refused(job, session) else ()
    custody = "off" if warnings else job.custody
    content_key = os.urandom(32)
    code = None if passcode is None else passcode.reveal()
    body, wrap_at = shares.build_body(
        lambda out: envelope.seal_chunks(
            content_key, fields.chunks(resolved_fields), code, out=out
        ),
        shares.ShareMembers(
            access_token=tokens.access_token(content_key),
            passcode_verifier=None if code is None else tokens.passcode_verifier(code),
            title=job.title,
            description=job.description,
            expires_at=expires_at,
            views=job.views,
            timed_view=job.timed_view,
            notify_on=job.notify_on,
            organization_id=job.organization_id,
            item_key_wrap=None if custody == "off" else _wrap(content_key, session),
        ),
    )
    labels = tuple((item.key, item.type) for item in resolved_fields)
    fragment = Secret(link.encode_fragment(content_key))
    return SealedShare(body, wrap_at, fragment, passcode, labels, warnings=warnings)


def _is_refused(job: ShareJob, session: Session) -> bool:
    """Return whether the service is known to refuse this share's wrap.

    With custody `require` it is asked each time.
    """
    return (
        job.custody == "auto"
        and session.credential.custody_secret is not None
        and session.lacks_custody
    )


def _wrap(content_key: bytes, session: Session) -> str | None:
    custody_secret = session.credential.custody_secret
    if custody_secret is None:
        return None
    from sealpipe.wire import keys, sealed_box  # loads elliptic curves: only for custody

    tag = session.credential.tag
    return sealed_box.seal(
        keys.from_custody_secret(custody_secret.reveal(), tag=tag).public_key, content_key, tag=tag
    )


SHORTEST_LIFETIME: Final = timedelta(minutes=1)
"""A share that would expire sooner than this is refused."""


def bound_expiry(
    expires_at: datetime | None, cache: Cache
) -> tuple[datetime | None, tuple[str, ...]]:
    """Return the expiry, no later than that of any document, and a remark if that changed it.

    Raises PluginError if less than a minute would be left.
    """
    earliest = find_earliest_expiry(cache)
    if earliest is None:
        return expires_at, ()
    end, reference = earliest
    if expires_at is not None and expires_at <= end:
        return expires_at, ()
    end = end.astimezone(UTC).replace(microsecond=0)
    if end - datetime.now(UTC) < SHORTEST_LIFETIME:
        raise PluginError(
            f"{reference} expires at {format_time(end)}, too soon for a share",
            locator=reference,
            remedy="extend its lease, and the lifetime of the token that reads it",
        )
    requested = "without an end" if expires_at is None else f"until {format_time(expires_at)}"
    note = (
        f"the share ends at {format_time(end)}, with what {reference} gives; it was asked for "
        f"{requested}"
    )
    return end, (note,)
