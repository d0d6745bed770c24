"""Deletes a request and its submissions. Expiring never does that."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from shlex import quote

from sealpipe.api import requests as api
from sealpipe.api.operation import Resend
from sealpipe.budget import call
from sealpipe.errors import (
    NotFoundError,
    ProtocolError,
    Remedy,
    RetriesExhaustedError,
    ServiceError,
    UsageError,
)
from sealpipe.expire.request import (
    Clock,
    EndedRequest,
    RequestExpiry,
    end_under_policy,
    get_utc_now,
)
from sealpipe.parsing import format_time
from sealpipe.session import Session
from sealpipe.state.ledger import Ledger, LedgerOpener
from sealpipe.wire.encoding import encoded


def purge_request(
    session: Session,
    short_code: str,
    confirm: str,
    keep: Path | LedgerOpener | None,
    now: Clock = get_utc_now,
) -> EndedRequest:
    """Expire the request if active, store the ciphertext, and only then delete it for good."""
    if confirm != short_code:
        raise UsageError(
            (
                f"purging deletes request {short_code} and its submissions for good, and was "
                "not confirmed"
            ),
            remedy=Remedy(
                "repeat the short code: --confirm CODE, in Python confirm=CODE",
                python="repeat the short code: confirm=CODE",
            ),
        )
    return end_under_policy(
        session, "purge", short_code, keep, partial(_purge_expired, short_code=short_code, now=now)
    )


def format_purge_command(short_code: str) -> str:
    """Return the shell command that purges the request.

    One of its words must be unambiguous (`confirm_code`).
    """
    return f"sealpipe requests purge --confirm {encoded(short_code)} -- {quote(short_code)}"


def _purge_expired(
    session: Session, record: Ledger, *, short_code: str, now: Clock
) -> EndedRequest:
    before = record.is_purging
    try:
        ended = RequestExpiry(session, short_code, record, now).run()
    except NotFoundError:
        if not before:
            raise
        # 404 after an earlier purge's DELETE that may have arrived: that DELETE deleted it.
        record.note_purge_result()
        return EndedRequest(short_code, "deleted", (), kept_in=record.path)
    if ended.outcome == "expiring" and ended.expires_at is not None:
        raise RetriesExhaustedError(
            (
                f"request {short_code} expires at {format_time(ended.expires_at)}, too soon to "
                "expire it before"
            ),
            remedy="run it again after that; nothing was changed",
        )
    record.note_purge()
    # It has expired and cannot become active again: from now on a DELETE can be repeated.
    operation = replace(api.delete(short_code), name="purge the request", resend=Resend.REPEATABLE)
    try:
        done = call(operation, session.start_budget(), unclear=before)
    except ServiceError as error:
        if error.unclear and (error.status, error.error_code) != (404, 70):
            remedy = f"run `{format_purge_command(short_code)}` again"
            raise error.copy_with(remedy=remedy) from error.__cause__
        record.note_purge_result()
        if not error.unclear:
            raise
    else:
        record.note_purge_result()
        if done.outcome != "deleted":
            raise ProtocolError(
                (
                    f"request {short_code} was reported as ended but was active: it has "
                    "expired only now"
                ),
                remedy=f"run `{format_purge_command(short_code)}` again",
            )
    return replace(ended, outcome="deleted")
