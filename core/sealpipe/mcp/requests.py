"""`request_secret`, `wait_for_submission` and `collect_secret`: ask a person, wait, and store what they submit."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sealpipe import flows
from sealpipe.cancellation import current
from sealpipe.errors import SealpipeError, StateError, UsageError
from sealpipe.mcp import made, unfinished
from sealpipe.mcp.arguments import make_count, make_list, make_number, make_object, make_text, make_time
from sealpipe.mcp.tools import Answer, Call, Tool, Use
from sealpipe.prompts import MAX_LENGTH, Prompt, check_prompt, check_prompts, parse_prompt
from sealpipe.reference import Reference, Target, parse, parse_target
from sealpipe.state.receipt import Receipt
from sealpipe.values import format_time, parse_duration
from sealpipe.wire.fields import TYPES

if TYPE_CHECKING:
    from pathlib import Path

    from sealpipe.flows.collect import CollectResult
    from sealpipe.flows.collect.options import CollectPlan
    from sealpipe.flows.session import Session

LONGEST_WAIT: Final = 900
"""Most seconds that one call waits. An assistant that wants to wait longer calls again."""
TICK: Final = 10.0
"""Seconds between progress notifications while waiting: clients give up on a call that says nothing."""
_DEFAULT_EXPIRY: Final = "24h"
CODE: Final = make_text("Short code, as `request_secret` returned it.", longest=100)


class Request(NamedTuple):
    """The arguments of `request_secret`, parsed."""

    prompts: tuple[Prompt, ...]
    to: Reference
    send: tuple[Target, ...]
    expires_in: timedelta
    title: str | None
    description: str | None


def _parse_request(arguments: Mapping[str, Any]) -> Request:
    prompts = check_prompts([_parse_prompt(each) for each in arguments["prompts"]])
    to = parse(arguments["to"], "`to`")
    send = tuple(parse_target(each) for each in arguments.get("send", ()))
    for what, text in (("`to`", to.body), *(("a recipient", each.to) for each in send)):
        if "{" in text or "}" in text:
            raise UsageError(f"{what} contains a brace", remedy="write the whole name or address")
    expires_in = parse_duration(arguments.get("expires_in", _DEFAULT_EXPIRY))
    request = Request(prompts, to, send, expires_in, arguments.get("title"), arguments.get("description"))
    planned = _plan_collect(Receipt("pending", "", prompts), to)  # what cannot be stored is not asked for
    stored = {each.label for job in planned.jobs for _, mappings in job.mappings for each in mappings}
    if not stored.issuperset(prompt.text for prompt in prompts):  # it would end with the request
        raise UsageError("`to` does not store the answer to each prompt", remedy="name each: #KEY=PROMPT,KEY=PROMPT")
    return request


def _parse_prompt(row: Mapping[str, Any]) -> Prompt:
    derived = parse_prompt(row["text"].replace("=", " ").replace(":", " ")).id if "id" not in row else row["id"]
    return check_prompt(Prompt(derived, row["text"], row.get("type", "password")))


def _plan_collect(receipt: Receipt, to: Reference | str, state: Path | None = None) -> CollectPlan:
    """Return how the one submission is collected: stored where the request said, then the request is expired."""
    from sealpipe.flows.collect.options import plan_collect

    return plan_collect([receipt], to=[to], pick="only", mode="create", after="expire", state=state)


async def _request(call: Call, request: Request) -> Answer:
    known = await call.client.run(lambda: _make_request(call.client.session, call, request))
    call.publish(*known.texts)
    content = {
        "code": known.short_code,
        "expires_at": known.expires_at and format_time(known.expires_at),
        "stored_in": known.sink,
        "sent_to": list(known.sent_to),
    }
    return Answer(content, known.link)


def _make_request(session: Session, call: Call, request: Request) -> made.Made:
    from sealpipe.flows.request import create as creating
    from sealpipe.flows.request import plan_request

    planned = made.plan(
        session,
        "request",
        call.client_name,
        title=request.title,
        sink=str(request.to),
        sent_to=tuple(map(str, request.send)),
        prompts=tuple(tuple(each) for each in request.prompts),
    )
    job = plan_request(
        prompts=request.prompts,
        name=planned.name,
        title=request.title,
        description=request.description,
        expires_in=request.expires_in,
        max_submissions=1,
        send=request.send,
    )
    unfinished.settle(session, call.state)
    _check_sink(session, _plan_collect(Receipt("pending", "", request.prompts), request.to))
    outbox = made.open_outbox(session, call.state)
    return made.create(session, call.state, planned, lambda: creating.request(session, job, outbox))


def _check_sink(session: Session, plan: CollectPlan) -> None:
    """Check that the sink understands what will be written: nobody is asked for what cannot be stored."""
    from sealpipe.flows.collect.options import plan_sample_writes
    from sealpipe.flows.store.write import describe_writes

    for job in plan.jobs:
        describe_writes(session, plan_sample_writes(job))


class Patience(NamedTuple):
    """The arguments of `wait_for_submission`."""

    code: str
    seconds: int


async def _wait(call: Call, patience: Patience) -> Answer:
    session = call.client.session
    known = made.find_made(call.state, session.base_url, patience.code, "request")
    call.publish(*known.texts)
    started = time.monotonic()

    def report() -> Awaitable[None]:
        return call.report(min(time.monotonic() - started, patience.seconds), patience.seconds, "waiting")

    state, submissions = await call.client.run(lambda: _poll(session, patience, report))
    return Answer({"state": state, "submissions": submissions})


def _poll(session: Session, patience: Patience, report: Callable[[], Awaitable[None]]) -> tuple[str, int]:
    """Poll at the intervals of `collect` until there is a submission, there can be none, or the time is up."""
    from sealpipe.api import requests as api
    from sealpipe.flows.collect.poll import TRANSIENT, choose_interval

    started = time.monotonic()
    while True:
        failure: SealpipeError | None = None
        try:
            listed = flows.call(api.list_submissions(patience.code), session.start_budget())
            if listed.total:
                return "submitted", listed.total
            info = flows.call(api.get(patience.code), session.start_budget())
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


async def _collect(call: Call, code: str) -> Answer:
    session = call.client.session
    known = made.find_made(call.state, session.base_url, code, "request")
    if known.sink is not None:  # the policy may have changed since
        call.policy.check(Use("collect_secret", sinks=(parse(known.sink),)))
    call.publish(*known.texts)
    result = await call.client.run(lambda: _store(session, call, known))
    rows = [
        {"keys": list(filter(None, each.keys)), "target": each.target, "already": each.already}
        for each in result.stored
    ]
    return Answer({"stored": rows, "request": "kept" if result.ended is None else "expired"})


def _store(session: Session, call: Call, known: made.Made) -> CollectResult:
    from sealpipe.flows.collect import poll

    if known.sink is None:
        raise StateError("the record of this request does not say where its submission is stored")
    options = _plan_collect(known.receipt, known.sink, call.state.parent / "requests")
    (result,) = poll.collect(session, options)
    problem = result.problem()
    if problem is not None and (result.failures or not result.stored):
        raise problem
    return result  # if only expiring failed, everything is stored: the answer says that the request is kept


REQUEST_SECRET: Final = Tool(
    "request_secret",
    "Ask a person for a secret",
    "Ask a person for one or more secrets. Creates a page for them to fill in, end-to-end encrypted, and returns its "
    "short code; the link is shown to the user, or sent to a recipient. The submission is stored in `to`, a store that "
    "you never read: call `wait_for_submission`, then `collect_secret`. Never ask for a secret in the chat.",
    make_object(
        {
            "prompts": make_list(
                make_object(
                    {
                        "text": make_text("What the page asks for, such as `Database password`.", longest=MAX_LENGTH),
                        "type": make_text("Default: password.", choices=tuple(TYPES)),
                        "id": make_text("Name of this value for `to`. Default: made from the text.", longest=64),
                    },
                    ("text",),
                ),
                "What to ask for.",
                least=1,
                most=20,
            ),
            "to": make_text(
                "Reference to where the submission is stored, such as `vault:secret/app#password=Database password`: "
                "KEY=PROMPT, by the prompt's text or id."
            ),
            "title": make_text("Title of the page.", longest=200),
            "description": make_text("Explains to the person what is asked, and why.", longest=1000),
            "expires_in": make_text(f"How long the link works: 30m, 12h, 7d. Default: {_DEFAULT_EXPIRY}.", longest=20),
            "send": make_list(
                make_text("Channel and recipient, such as email:somebody@example.com.", longest=400),
                "Also send the link. Default: only show it to the user.",
                most=5,
            ),
        },
        ("prompts", "to"),
    ),
    make_object(
        {
            "code": make_text("Short code."),
            "expires_at": make_time("When the link stops working."),
            "stored_in": make_text("Where `collect_secret` stores the submission."),
            "sent_to": make_list(make_text(), "Who got the link.", most=5),
            "link": make_text("The link for the person, if the client could not show it. It is no secret."),
        },
        ("code", "expires_at", "stored_in", "sent_to"),
    ),
    _parse_request,
    lambda request: Use("request_secret", sinks=(request.to,), recipients=request.send, expires_in=request.expires_in),
    _request,
)

WAIT_FOR_SUBMISSION: Final = Tool(
    "wait_for_submission",
    "Wait until the person has answered",
    "Wait until somebody has submitted to a request of `request_secret`. Call it again while the state is `pending`.",
    make_object(
        {"code": CODE, "seconds": make_number("How long to wait. Default: 300.", least=0, most=LONGEST_WAIT)}, ("code",)
    ),
    make_object(
        {
            "state": make_text("`expired`: without a submission.", choices=("pending", "submitted", "expired")),
            "submissions": make_count("How many there are."),
        },
    ),
    lambda arguments: Patience(arguments["code"], arguments.get("seconds", 300)),
    lambda patience: Use("wait_for_submission", subject=patience.code),
    _wait,
    is_read_only=True,
)

COLLECT_SECRET: Final = Tool(
    "collect_secret",
    "Store what the person submitted",
    "Decrypt the one submission to a request, store it where `request_secret` said, and expire the request. Returns "
    "which keys were stored where, never a value. Safe to call again.",
    make_object({"code": CODE}),
    make_object(
        {
            "stored": make_list(
                make_object(
                    {
                        "keys": make_list(make_text(), "None: the target is one value.", most=20),
                        "target": make_text("Where."),
                        "already": {"type": "boolean", "description": "Whether an earlier call had stored it."},
                    }
                ),
                "What was stored.",
                most=20,
            ),
            "request": make_text("`kept`: it could not be expired.", choices=("expired", "kept")),
        }
    ),
    lambda arguments: str(arguments["code"]),
    lambda code: Use("collect_secret", subject=code),
    _collect,
    is_destructive=False,
)
