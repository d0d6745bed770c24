"""Expire a share at once (specification: DELETE /v1/shares/{shortCode}). It can be repeated.

A second DELETE gets 404/1, as does a short code that never existed. It is a success only with proof
that the share belonged to this account: this machine's note that it expired the share, the share's
metadata (they remain if it ended by time or views), or the service's list of ended shares. Without
proof it is a `NotFoundError`: a mistyped code is never a success.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

from sealpipe import actions, policy
from sealpipe.api import shares
from sealpipe.budget import Budget, call
from sealpipe.errors import (
    NotFoundError,
    OutcomeUnknownError,
    ServiceError,
    StateError,
    add_to_remedy,
)
from sealpipe.permissions import has_content
from sealpipe.session import Session
from sealpipe.state.files import create_file, make_private_directory
from sealpipe.wire.link import called

MAX_PAGES: Final = 5
"""Pages of 100 ended shares, the latest first, in which a share is searched for."""


@dataclass(frozen=True, slots=True)
class EndedShare:
    """A share that has ended.

    `outcome` is `expired` (now) or `already-expired` (before this call).
    """

    short_code: str
    outcome: Literal["expired", "already-expired"]


def end_share(session: Session, short_code: str, budget: Budget | None = None) -> None:
    """Expire a share.

    A lost response is harmless: the call is repeated, and a second DELETE changes nothing.

    Part of work that policies have allowed. Raises NotFoundError if there is no such share or it
    had ended before, OutcomeUnknownError if no attempt was settled.
    """
    try:
        call(shares.expire(short_code), budget or session.start_budget())
    except OutcomeUnknownError as error:
        # 404 after an attempt of ours that may have arrived: that attempt expired it.
        if (error.status, error.error_code) != (404, 1):
            raise


def expire_share(session: Session, short_code: str, keep: Path | None = None) -> EndedShare:
    """Expire a share; one that had ended before is `already-expired`. See `Client.expire_share`."""
    called(short_code)
    plan = actions.describe_ending(session, "expire", "share", short_code)

    def work(session: Session) -> EndedShare:
        return _expire_share(session, short_code, keep)

    return policy.run_under_policy(session, plan, work, lambda ended: {"outcome": ended.outcome})


def _expire_share(session: Session, short_code: str, keep: Path | None) -> EndedShare:
    budget = session.start_budget()
    try:
        end_share(session, short_code, budget)
    except NotFoundError as missing:
        if (missing.status, missing.error_code) != (404, 1):
            raise
        if not _has_proof_of_share(session, short_code, keep, budget):
            more = "; a share that was expired from another machine looks the same"
            raise missing.copy_with(
                remedy=add_to_remedy(missing.remedy, more)
            ) from missing.__cause__
        return EndedShare(short_code, "already-expired")
    if keep is not None:
        with suppress(StateError):  # it has ended, with or without the note
            note_expired(keep, session.base_url, short_code)
    return EndedShare(short_code, "expired")


def _has_proof_of_share(
    session: Session, short_code: str, keep: Path | None, budget: Budget
) -> bool:
    """Return whether anything proves that this account had such a share.

    A failed call proves nothing.
    """
    if keep is not None and was_expired(keep, session.base_url, short_code):
        return True
    with suppress(ServiceError):
        call(shares.get(short_code), budget)
        return True
    with suppress(ServiceError):
        for page in range(1, MAX_PAGES + 1):
            ended_page = call(shares.list_page(page, 100, "expired"), budget)
            if any(row.short_code == short_code for row in ended_page.items):
                return True
            if page >= (ended_page.pagination.total_pages or 0):
                break
    return False


def note_expired(folder: Path, base_url: str, short_code: str) -> None:
    """Record that the service has confirmed the share's expiry. Raises StateError."""
    path, content = _locate_expired_note(folder, base_url, short_code)
    make_private_directory(folder)
    try:
        with suppress(FileExistsError):
            create_file(path, lambda: [content])
    except OSError as error:
        raise StateError(f"{path} cannot be written: {error.strerror}") from None


def was_expired(folder: Path, base_url: str, short_code: str) -> bool:
    """Return whether the expiry is recorded. A file with any other content does not count."""
    path, content = _locate_expired_note(folder, base_url, short_code)
    try:
        return has_content(path, content)
    except OSError:
        return False


def _locate_expired_note(folder: Path, base_url: str, short_code: str) -> tuple[Path, bytes]:
    line = {"schema": 1, "kind": "expired-share", "base_url": base_url, "short_code": short_code}
    name = sha256(f"{base_url}\n{short_code}".encode()).hexdigest()[:32]
    return folder / f"{name}.json", json.dumps(line).encode() + b"\n"
