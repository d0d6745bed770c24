"""The tool `share_secret`.

References that the policy allows go to a recipient that it allows, and the link only there.

A call can be repeated: the id of a share's record is made from the arguments, so the same call
finds what an earlier one left. It sends what was certainly not sent, and makes no second share.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import Field

from sealpipe.errors import DeliveryError, StateError, UsageError
from sealpipe.mcp import records
from sealpipe.mcp.models import Code, Model, Text, Time
from sealpipe.mcp.tools import Answer, Call, Tool, Use
from sealpipe.parsing import parse_duration
from sealpipe.reference import FieldSpec, Target, parse, parse_target
from sealpipe.session import Session
from sealpipe.share.options import plan_share
from sealpipe.share.post import share
from sealpipe.state.creations import REPEAT_SECONDS

_DEFAULT_EXPIRY: Final = "24h"
_SAME: Final = timedelta(seconds=REPEAT_SECONDS)
"""How long after a share was made the same call returns it, rather than making another."""
_TRIES: Final = 3
_REASON: Final = 150
"""Characters of the reason why the link was not sent: what to do follows, and must not be cut
off.
"""


class Source(Model):
    """One secret to share."""

    reference: str = Field(
        min_length=1,
        max_length=500,
        description="Where the secret is, such as vault:secret/app/db#password.",
    )
    label: str = Field(
        "",
        min_length=1,
        max_length=200,
        description="What the recipient sees above it. Default: its name.",
    )


class ShareArguments(Model):
    """The arguments of `share_secret`. An empty text is one that was not given."""

    fields: list[Source] = Field(min_length=1, max_length=20, description="What to share.")
    to: str = Field(
        min_length=1,
        max_length=400,
        description="Channel and recipient, such as email:somebody@example.com.",
    )
    title: str = Field("", min_length=1, max_length=200, description="Title of the share.")
    expires_in: str = Field(
        _DEFAULT_EXPIRY,
        min_length=1,
        max_length=20,
        description=f"How long the link works: 30m, 12h, 7d. Default: {_DEFAULT_EXPIRY}.",
    )
    views: int = Field(1, ge=1, le=100, description="How often the link can be opened. Default: 1.")


class ShareAnswer(Model):
    """The answer of `share_secret`."""

    code: Code = Field(description="Short code.")
    expires_at: Time | None = Field(description="When the link stops working.")
    sent_to: list[Text] = Field(max_length=1, description="Who got the link.")
    repeated: bool = Field(description="Whether an earlier call had made this share.")


class Wanted(NamedTuple):
    """What to share: the arguments of a call, parsed."""

    fields: tuple[FieldSpec, ...]
    to: Target
    expires_in: timedelta
    title: str | None
    views: int

    def identify(self, session: Session, client: str, number: int) -> str:
        """Return the record's id for a client's share number `number` with these arguments."""
        options = (
            self.to.name,
            self.to.to,
            self.expires_in.total_seconds(),
            self.title,
            self.views,
        )
        members = [session.base_url, client, [str(each) for each in self.fields], *options, number]
        return sha256(json.dumps(members).encode()).hexdigest()[:12]


async def share_fields(call: Call, wanted: Wanted) -> Answer:
    """Share the fields, and send the link.

    Raises DeliveryError if the share exists and its link was not sent.
    """
    session = call.client.session
    try:
        record, is_new = await call.client.run(
            lambda: share_once(session, call.state, call.client_name, wanted)
        )
    except DeliveryError as error:
        raise _describe_failure(error) from None
    call.publish(*record.texts)
    known = record.known
    return Answer(
        ShareAnswer(
            code=known.short_code,
            expires_at=known.expires_at,
            sent_to=record.notes.sent_to,
            repeated=not is_new,
        )
    )


def _describe_failure(error: DeliveryError) -> DeliveryError:
    """Return the error with the code of the share, and what to do."""
    entry = error.outbox_id or "ID"
    states = [each.state for each in error.share.deliveries.items]
    what, remedy = (
        (
            "may have arrived",
            f"ask the recipient; if it did not, a person runs `sealpipe resume {entry} --resend`",
        )
        if "sending" in states
        else (
            "was not sent",
            f"repeat the call: it sends only the link; or a person runs `sealpipe resume {entry}`",
        )
    )
    message = (
        f"the share {error.share.short_code} exists, but its link {what}: {error.message[:_REASON]}"
    )
    failure = DeliveryError(message, remedy=remedy, outbox_id=error.outbox_id)
    failure.share = error.share
    return failure


def share_once(
    session: Session, folder: Path, client: str, wanted: Wanted
) -> tuple[records.Record, bool]:
    """Make the share, or finish what an earlier call with these arguments began.

    Also returns whether it is new.
    """
    for number in count():
        made_id = wanted.identify(session, client, number)
        for _ in range(_TRIES):
            earlier, was_left = records.finish(session, folder, made_id)
            if earlier is not None:
                break
            with suppress(records.AlreadyBegunError):  # the same call at the same moment
                return _create(session, folder, made_id, client, wanted), True
        else:
            raise StateError(
                f"what the call {made_id} left cannot be read", remedy="wait, then call `list`"
            )
        if was_left or not _is_over(folder, earlier):
            return earlier, False
    raise AssertionError


def _create(
    session: Session, folder: Path, made_id: str, client: str, wanted: Wanted
) -> records.Record:

    job = plan_share(
        wanted.fields,
        name=records.make_name(made_id),
        title=wanted.title,
        expires_in=wanted.expires_in,
        views=wanted.views,
        send=[wanted.to],
    )
    notes = records.Notes(client=client, sent_to=[str(wanted.to)])
    return records.create(
        session,
        folder,
        made_id,
        lambda outbox: share(session, job, outbox, notes=notes.model_dump()),
    )


def _is_over(folder: Path, record: records.Record) -> bool:
    """Return whether the same call makes another share.

    After a while, or once this one has ended.
    """
    created_at = record.known.created_at
    is_same = created_at is not None and -_SAME < datetime.now(UTC) - created_at < _SAME
    return not is_same or record.has_ended(folder)


def _parse(given: ShareArguments) -> Wanted:
    to = parse_target(given.to)
    if "{" in to.to or "}" in to.to:
        raise UsageError("`to` contains a brace", remedy="write the whole address")
    for name, text in (("title", given.title), *(("label", each.label) for each in given.fields)):
        if not text.isprintable():
            raise UsageError(
                f"`{name}` contains a control character", remedy="write one line of text"
            )
    fields = tuple(
        FieldSpec(each.label or None, parse(each.reference, "`reference`")) for each in given.fields
    )
    return Wanted(fields, to, parse_duration(given.expires_in), given.title or None, given.views)


def _describe(wanted: Wanted) -> Use:
    sources = tuple(each.ref for each in wanted.fields)
    return Use("share_secret", sources, recipients=(wanted.to,), expires_in=wanted.expires_in)


SHARE_SECRET: Final = Tool(
    "share_secret",
    "Send secrets to a person",
    "Encrypt secrets, named by reference, and send the link to a recipient by a channel. Neither "
    "the secrets nor the link are returned. The same call within ten minutes sends nothing twice.",
    ShareArguments,
    ShareAnswer,
    _parse,
    _describe,
    share_fields,
)
