"""`request_secret`, `wait_for_submission` and `collect_secret`: ask a person, wait, and store what
they submit.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import Field

from sealpipe import budget
from sealpipe.api import requests as api
from sealpipe.cancellation import current
from sealpipe.collect import poll
from sealpipe.collect.options import CollectPlan, plan_collect, plan_sample_writes
from sealpipe.collect.results import CollectResult
from sealpipe.errors import SealpipeError, StateError, UsageError
from sealpipe.mcp import records
from sealpipe.mcp.models import Code, Count, Model, Text, Time
from sealpipe.mcp.tools import Answer, Call, Tool, Use
from sealpipe.parsing import parse_duration
from sealpipe.polling import TRANSIENT, choose_interval
from sealpipe.prompts import MAX_LENGTH, Prompt, check_prompt, check_prompts, parse_prompt
from sealpipe.reference import Reference, Target, parse, parse_target
from sealpipe.request import create
from sealpipe.request.options import plan_request
from sealpipe.session import Session
from sealpipe.sinks.write import check_targets
from sealpipe.state.receipt import Receipt
from sealpipe.wire.fields import TYPES

_MAX_QUOTED: Final = 60
"""Longest `to` that an error quotes."""
LONGEST_WAIT: Final = 900
"""Most seconds that one call waits. An assistant that wants to wait longer calls again."""
TICK: Final = 10.0
"""Seconds between progress notifications while waiting: clients give up on a call that says
nothing.
"""
_DEFAULT_EXPIRY: Final = "24h"
Recipient = Annotated[
    str,
    Field(
        min_length=1,
        max_length=400,
        description="Channel and recipient, such as email:somebody@example.com.",
    ),
]


class PromptArguments(Model):
    """One thing to ask for. An empty id is one that was not given."""

    text: str = Field(
        min_length=1,
        max_length=MAX_LENGTH,
        description="What the page asks for, such as `Database password`.",
    )
    type: Literal[tuple(TYPES)] = Field(  # type: ignore[valid-type]
        "password", description="Default: password."
    )
    id: str = Field(
        "",
        min_length=1,
        max_length=64,
        description="Name of this value for `to`. Default: made from the text.",
    )


class RequestArguments(Model):
    """The arguments of `request_secret`. An empty text is one that was not given."""

    prompts: list[PromptArguments] = Field(
        min_length=1, max_length=20, description="What to ask for."
    )
    to: Text = Field(
        description="Reference to where the submission is stored, such as "
        "`vault:secret/app#password=Database password`: KEY=PROMPT, by the prompt's text or id."
    )
    title: str = Field("", min_length=1, max_length=200, description="Title of the page.")
    description: str = Field(
        "",
        min_length=1,
        max_length=1000,
        description="Explains to the person what is asked, and why.",
    )
    expires_in: str = Field(
        _DEFAULT_EXPIRY,
        min_length=1,
        max_length=20,
        description=f"How long the link works: 30m, 12h, 7d. Default: {_DEFAULT_EXPIRY}.",
    )
    send: list[Recipient] = Field(
        [], max_length=5, description="Also send the link. Default: only show it to the user."
    )


class RequestAnswer(Model):
    """The answer of `request_secret`."""

    code: Code = Field(description="Short code.")
    expires_at: Time | None = Field(description="When the link stops working.")
    stored_in: Text = Field(description="Where `collect_secret` stores the submission.")
    sent_to: list[Text] = Field(max_length=5, description="Who got the link.")
    link: Text | None = Field(
        default=None,
        description="The link for the person, if the client could not show it. It is no secret.",
    )


class CollectArguments(Model):
    """The arguments of `collect_secret`."""

    code: Code = Field(description="Short code, as `request_secret` returned it.")


class WaitArguments(CollectArguments):
    """The arguments of `wait_for_submission`."""

    seconds: int = Field(300, ge=0, le=LONGEST_WAIT, description="How long to wait. Default: 300.")


Progress = Literal["pending", "submitted", "expired"]


class WaitAnswer(Model):
    """The answer of `wait_for_submission`."""

    state: Progress = Field(description="`expired`: without a submission.")
    submissions: Count = Field(description="How many there are.")


class Stored(Model):
    """What was stored in one place."""

    keys: list[Text] = Field(max_length=20, description="None: the target is one value.")
    target: Text = Field(description="Where.")
    already: bool = Field(description="Whether an earlier call had stored it.")


class CollectAnswer(Model):
    """The answer of `collect_secret`."""

    stored: list[Stored] = Field(max_length=20, description="What was stored.")
    request: Literal["expired", "kept"] = Field(description="`kept`: it could not be expired.")


class Request(NamedTuple):
    """The arguments of `request_secret`, parsed."""

    prompts: tuple[Prompt, ...]
    to: Reference
    send: tuple[Target, ...]
    expires_in: timedelta
    title: str | None
    description: str | None


def _parse_request(given: RequestArguments) -> Request:
    prompts = check_prompts([_parse_prompt(each) for each in given.prompts])
    to = parse(given.to, "`to`")
    send = tuple(map(parse_target, given.send))
    for what, text in (("`to`", to.body), *(("a recipient", each.to) for each in send)):
        if "{" in text or "}" in text:
            raise UsageError(f"{what} contains a brace", remedy="write the whole name or address")
    expires_in = parse_duration(given.expires_in)
    request = Request(prompts, to, send, expires_in, given.title or None, given.description or None)
    try:
        # What cannot be stored is not asked for.
        planned = _plan_collect(Receipt("pending", "", prompts), to)
    except UsageError as error:
        if len(given.to) <= _MAX_QUOTED:
            raise
        raise UsageError("`to` does not fit the prompts", remedy=error.remedy) from None
    stored = {
        each.label for job in planned.jobs for _, mappings in job.mappings for each in mappings
    }
    if not stored.issuperset(prompt.text for prompt in prompts):  # it would end with the request
        raise UsageError(
            "`to` does not store the answer to each prompt",
            remedy="name each: #KEY=PROMPT,KEY=PROMPT",
        )
    return request


def _parse_prompt(given: PromptArguments) -> Prompt:
    derived = given.id or parse_prompt(given.text.replace("=", " ").replace(":", " ")).id
    return check_prompt(Prompt(derived, given.text, given.type))


def _plan_collect(receipt: Receipt, to: Reference | str, state: Path | None = None) -> CollectPlan:
    """Return how the one submission is collected.

    Stored where the request said, then the request is expired.
    """
    return plan_collect([receipt], to=[to], pick="only", mode="create", after="expire", state=state)


async def _request(call: Call, request: Request) -> Answer:
    record = await call.client.run(lambda: _make_request(call.client.session, call, request))
    call.publish(*record.texts)
    known, notes = record.known, record.notes
    content = RequestAnswer(
        code=known.short_code,
        expires_at=known.expires_at,
        stored_in=notes.sink or "",
        sent_to=notes.sent_to,
    )
    return Answer(content, known.link)


def _make_request(session: Session, call: Call, request: Request) -> records.Record:

    notes = records.Notes(
        client=call.client_name,
        sink=str(request.to),
        sent_to=[str(each) for each in request.send],
        prompts=[list(each) for each in request.prompts],
    )
    made_id = records.make_id()
    job = plan_request(
        prompts=request.prompts,
        name=records.make_name(made_id),
        title=request.title,
        description=request.description,
        expires_in=request.expires_in,
        max_submissions=1,
        send=request.send,
    )
    records.settle(session, call.state)
    _check_sink(session, _plan_collect(Receipt("pending", "", request.prompts), request.to))
    return records.create(
        session,
        call.state,
        made_id,
        lambda outbox: create.request(session, job, outbox, notes=notes.model_dump()),
    )


def _check_sink(session: Session, plan: CollectPlan) -> None:
    """Check that the sink understands what will be written.

    Nobody is asked for what cannot be stored.
    """

    for job in plan.jobs:
        check_targets(session, job.targets, plan_sample_writes(job))


async def _wait(call: Call, patience: WaitArguments) -> Answer:
    session = call.client.session
    known = records.find_record(session, call.state, patience.code, "request")
    call.publish(*known.texts)
    started = time.monotonic()

    def report() -> Awaitable[None]:
        return call.report(
            min(time.monotonic() - started, patience.seconds), patience.seconds, "waiting"
        )

    state, submissions = await call.client.run(lambda: _poll(session, patience, report))
    return Answer(WaitAnswer(state=state, submissions=submissions))


def _poll(
    session: Session, patience: WaitArguments, report: Callable[[], Awaitable[None]]
) -> tuple[Progress, int]:
    """Poll at the intervals of `collect` until there is a submission, there can be none, or the
    time is up.
    """

    started = time.monotonic()
    while True:
        failure: SealpipeError | None = None
        try:
            listed = budget.call(api.list_submissions(patience.code), session.start_budget())
            if listed.total:
                return "submitted", listed.total
            info = budget.call(api.get(patience.code), session.start_budget())
            if info.has_ended:
                return "expired", 0
        except TRANSIENT as error:
            failure = error
        elapsed = time.monotonic() - started
        left = min(patience.seconds - elapsed, choose_interval(elapsed, 1))
        if left <= 0:
            if failure is not None:
                raise failure
            return "pending", 0
        while left > 0:
            current().notify(report)
            session.wait(min(TICK, left))
            left -= TICK


async def _collect(call: Call, given: CollectArguments) -> Answer:
    session = call.client.session
    known = records.find_record(session, call.state, given.code, "request")
    if known.notes.sink is not None:  # the policy may have changed since
        call.policy.check(Use("collect_secret", sinks=(parse(known.notes.sink),)))
    call.publish(*known.texts)
    result = await call.client.run(lambda: _store(session, call, known))
    rows = [
        Stored(keys=list(filter(None, each.keys)), target=each.target, already=each.already)
        for each in result.stored
    ]
    return Answer(CollectAnswer(stored=rows, request="kept" if result.ended is None else "expired"))


def _store(session: Session, call: Call, known: records.Record) -> CollectResult:
    if known.notes.sink is None:
        raise StateError("the record of this request does not say where its submission is stored")
    options = _plan_collect(known.receipt, known.notes.sink, call.state.parent / "requests")
    (result,) = poll.collect(session, options)
    problem = result.problem()
    if problem is not None and (result.failures or not result.stored):
        raise problem
    # if only expiring failed, everything is stored: the answer says that the request is kept
    return result


REQUEST_SECRET: Final = Tool(
    "request_secret",
    "Ask a person for a secret",
    "Ask a person for one or more secrets. Creates a page for them to fill in, end-to-end "
    "encrypted, and returns its short code; the link is shown to the user, or sent to a recipient. "
    "The submission is stored in `to`, a store that you never read: call `wait_for_submission`, "
    "then `collect_secret`. Never ask for a secret in the chat.",
    RequestArguments,
    RequestAnswer,
    _parse_request,
    lambda request: Use(
        "request_secret",
        sinks=(request.to,),
        recipients=request.send,
        expires_in=request.expires_in,
    ),
    _request,
)

WAIT_FOR_SUBMISSION: Final = Tool(
    "wait_for_submission",
    "Wait until the person has answered",
    (
        "Wait until somebody has submitted to a request of `request_secret`. Call it again "
        "while the state is `pending`."
    ),
    WaitArguments,
    WaitAnswer,
    lambda given: given,
    lambda patience: Use("wait_for_submission", subject=patience.code),
    _wait,
    is_read_only=True,
)

COLLECT_SECRET: Final = Tool(
    "collect_secret",
    "Store what the person submitted",
    "Decrypt the one submission to a request, store it where `request_secret` said, and expire the "
    "request. Returns which keys were stored where, never a value. Safe to call again.",
    CollectArguments,
    CollectAnswer,
    lambda given: given,
    lambda given: Use("collect_secret", subject=given.code),
    _collect,
    is_destructive=False,
)
