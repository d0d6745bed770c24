"""The tools `list`, `status` and `expire`.

What this server made on this machine, in all of its runs, and nothing else.

An assistant cannot destroy what a person sent: a request with a submission is expired by
`collect_secret`, once the submission is stored, or by a person. Its ciphertext is kept in the state
directory in any case, as by the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field

from sealpipe import budget
from sealpipe.api import requests, shares
from sealpipe.api.pages import Page
from sealpipe.errors import PermissionDeniedError, UsageError
from sealpipe.expire.request import expire_request
from sealpipe.mcp.models import Code, CodeArguments, Count, Model, Nothing, Text, Time, Untrusted
from sealpipe.mcp.records import Record, find_record, list_records, settle
from sealpipe.mcp.secret_guard import untrusted
from sealpipe.mcp.tools import Answer, Call, Tool, Use
from sealpipe.session import Session
from sealpipe.state.creations import Kind

_MOST: Final = 100
"""Shares and requests in a list: the newest."""
_MAX_PAGES: Final = 5
"""Pages of 100 rows in which the service is asked for what is active."""
State = Literal["active", "ended", "unknown"]
Ending = Literal["expired", "already-expired", "expiring"]


class MadeAnswer(Model):
    """A share or a request that this server made."""

    code: Code | None = Field(description="Short code. Null: it is not known whether it exists.")
    kind: Kind = Field(description="What it is.")
    name: Text = Field(description="Its name on this machine, for a person.")
    state: State = Field(description="`unknown`: the service does not say.")
    finished: bool = Field(
        description="False: it may not exist, or its link was not sent. The same call of "
        "`share_secret` finishes a share; a person finishes anything with `sealpipe resume`."
    )
    created_at: Time = Field(description="When it was made.")
    expires_at: Time | None = Field(description="When its link stops working.")
    client: Untrusted = Field(description="The client that made it.")
    sent_to: list[Text] = Field(max_length=20, description="Who got the link.")
    title: Untrusted | None = Field(default=None, description="Its title.")
    stored_in: Text | None = Field(
        default=None, description="Where `collect_secret` stores the submission."
    )


class ListAnswer(Model):
    """The answer of `list`."""

    made: list[MadeAnswer] = Field(max_length=_MOST, description="The newest first.")
    left_out: Count = Field(description="How many older ones are left out.")


class StatusAnswer(MadeAnswer):
    """The answer of `status`."""

    submissions: Count | None = Field(default=None, description="Submissions to the request.")


class ExpireAnswer(Model):
    """The answer of `expire`."""

    code: Code = Field(description="Short code.")
    kind: Kind = Field(description="What it is.")
    outcome: Ending = Field(description="`expiring`: it ends within two minutes by itself.")
    submissions: Count | None = Field(
        default=None, description="Submissions to the request, all of them kept."
    )


async def list_all(call: Call, _: Nothing) -> Answer:
    """List what this server made, with the states that the service tells.

    What a kill left of requests is finished.
    """
    session = call.client.session
    await call.client.run(lambda: settle(session, call.state))
    found = list_records(session, call.state)
    shown = found[:_MOST]
    for each in shown:
        call.publish(*each.texts)
    states = await call.client.run(lambda: _find_states(session, shown))
    rows = [MadeAnswer(**_describe(each, state)) for each, state in zip(shown, states, strict=True)]
    return Answer(ListAnswer(made=rows, left_out=len(found) - len(shown)))


async def show(call: Call, given: CodeArguments) -> Answer:
    """Show one share or request. Raises NotFoundError for what this server did not make."""
    session, code = call.client.session, given.code
    known = find_record(session, call.state, code)
    call.publish(*known.texts)
    if known.known.kind == "share":
        (state,) = await call.client.run(lambda: _find_states(session, [known]))
        return Answer(StatusAnswer(**_describe(known, state)))
    state, submissions = await call.client.run(lambda: _look_at_request(session, code))
    return Answer(StatusAnswer(**_describe(known, state), submissions=submissions))


async def expire(call: Call, given: CodeArguments) -> Answer:
    """Expire a share, or a request without a submission.

    Raises UsageError for one with a submission.
    """
    session, code = call.client.session, given.code
    known = find_record(session, call.state, code)
    call.publish(*known.texts)
    folder = call.state.parent
    if known.known.kind == "share":
        ended = await call.client.expire_share(code, keep=folder / "shares")
        return Answer(ExpireAnswer(code=code, kind="share", outcome=ended.outcome))
    outcome, submissions = await call.client.run(
        lambda: _expire_request(session, code, folder / "requests")
    )
    return Answer(ExpireAnswer(code=code, kind="request", outcome=outcome, submissions=submissions))


def _describe(record: Record, state: State) -> dict[str, Any]:
    known, notes = record.known, record.notes
    members: dict[str, Any] = {
        "code": known.short_code or None,
        "kind": known.kind,
        "name": known.name,
        "state": state,
        "finished": record.is_finished,
        "created_at": known.created_at,
        "expires_at": known.expires_at,
        "client": untrusted(notes.client),
        "sent_to": notes.sent_to if record.is_finished else [],
    }
    members |= {} if known.title is None else {"title": untrusted(known.title)}
    return members | ({} if notes.sink is None else {"stored_in": notes.sink})


def _find_states(session: Session, found: Sequence[Record]) -> list[State]:
    """Return the state of each.

    Active ones are in the service's lists, which are read as far as needed.
    """
    lists: Mapping[Kind, Callable[..., Any]] = {
        "share": shares.list_page,
        "request": requests.list_page,
    }
    now = datetime.now(UTC)
    states: dict[str, State] = {"": "unknown"}
    for kind, list_page in lists.items():
        codes = {
            each.known.short_code
            for each in found
            if each.known.kind == kind and not _has_passed(each, now)
        } - {""}
        if codes:
            active, is_whole = _find_active(session, list_page, codes)
            states |= {
                code: "active" if code in active else "ended" if is_whole else "unknown"
                for code in codes
            }
    return [states.get(each.known.short_code, "ended") for each in found]


def _find_active(
    session: Session, list_page: Callable[..., Any], codes: Collection[str]
) -> tuple[set[str], bool]:
    """Return the codes that the service lists as active, and whether that is all of them."""
    active: set[str] = set()
    for page in range(1, _MAX_PAGES + 1):
        try:
            rows: Page[Any] = budget.call(list_page(page, 100), session.start_budget())
        except PermissionDeniedError:  # a key may lack the scope for lists
            return active, False
        active |= {row.short_code for row in rows.items}
        if active.issuperset(codes) or page >= (rows.pagination.total_pages or 1):
            return active, True
    return active, False


def _has_passed(record: Record, now: datetime) -> bool:
    return record.known.expires_at is not None and record.known.expires_at <= now


def _look_at_request(session: Session, code: str) -> tuple[State, int]:
    """Return the state of a request and its number of submissions."""
    info = budget.call(requests.get(code), session.start_budget())
    listed = budget.call(requests.list_submissions(code), session.start_budget())
    return "ended" if info.has_ended else "active", listed.total


def _expire_request(session: Session, code: str, keep: Path) -> tuple[Ending, int]:
    """Expire a request by rule D.

    One that comes meanwhile is kept: at the service, and as ciphertext here.
    """
    state, submissions = _look_at_request(session, code)
    if state == "active" and submissions:
        raise UsageError(
            f"request {code} has a submission: it was not expired",
            remedy="call `collect_secret`, which stores the submission and then expires the "
            "request; or a person runs `sealpipe requests expire`",
        )
    ended = expire_request(session, code, keep)
    assert ended.outcome != "deleted"  # noqa: S101 - only a purge does that
    return ended.outcome, len(ended.submissions) + ended.skipped


LIST: Final = Tool(
    "list",
    "List shares and requests",
    (
        "List the shares and requests that this server made, in this run and in earlier ones, "
        "with their states. No links."
    ),
    Nothing,
    ListAnswer,
    lambda given: given,
    lambda _: Use("list"),
    list_all,
)

STATUS: Final = Tool(
    "status",
    "Show a share or a request",
    (
        "Show the state of a share or a request that this server made; of a request, the "
        "number of submissions, too."
    ),
    CodeArguments,
    StatusAnswer,
    lambda given: given,
    lambda given: Use("status", subject=given.code),
    show,
    is_read_only=True,
)

EXPIRE: Final = Tool(
    "expire",
    "Expire a share or a request",
    "Expire a share or a request that this server made: its link stops working, for good. A "
    "request with a submission is not expired: call `collect_secret`. Safe to call again.",
    CodeArguments,
    ExpireAnswer,
    lambda given: given,
    lambda given: Use("expire", subject=given.code),
    expire,
    is_destructive=True,
)
