"""`sealpipe request`."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import click

from sealpipe.api.requests import RequestMembers
from sealpipe.cli import deliver, disclosure, render
from sealpipe.cli.command import (
    EXPIRY,
    call_arguments,
    choose_expiry,
)
from sealpipe.cli.local import find_state_folder
from sealpipe.cli.opening import make_session, open_outbox
from sealpipe.client_base import connect
from sealpipe.errors import UsageError
from sealpipe.parsing import format_optional_time
from sealpipe.request import create as requesting
from sealpipe.request.create import PlannedRequest
from sealpipe.request.options import RequestJob, plan_request
from sealpipe.session import Session
from sealpipe.settings import ARGUMENTS


def request(ctx: click.Context, /, **values: Any) -> None:
    """Run `sealpipe request`."""
    to = deliver.check_targets(None, values["receipt"], values["name"])
    arguments = call_arguments("request", plan_request, values, but=EXPIRY) | choose_expiry(
        ctx, values
    )
    arguments |= {name: arguments[name] or None for name in ("requires_login", "requires_mfa")}
    job = plan_request(**arguments)
    _check_seed(values)
    session = make_session(values, job.needs)
    disclosure.get_ci(session.registry)  # if it cannot be used, nothing is sent
    with closing(connect(session)):
        if values["dry_run"]:
            planned = requesting.plan_dry_run(session, job)
            _print_plan(job, planned, session, to["receipt"], as_json=values["output"] == "json")
            return
        outbox = open_outbox(values, session.credential)
        created = requesting.request(session, job, outbox, deliver=to)
        created_folder = find_state_folder(values, "created")
        deliver.finish(
            session,
            created,
            to,
            disclosure.NO_DISCLOSURE,
            created=created_folder,
            as_json=values["output"] == "json",
        )


def _print_plan(
    job: RequestJob,
    planned: PlannedRequest,
    session: Session,
    receipt: str | None,
    *,
    as_json: bool,
) -> None:
    """Print what the command would do, without values."""
    members = _describe_plan(job, planned, session, receipt)
    if as_json:
        render.print_json(members)
        return
    lines = [f"would post to {members['base_url']}/requests ({members['body_bytes']} bytes)"]
    lines += [
        f"  prompt {row['id']} ({row['type']}): {render.escape(row['text'])}"
        for row in members["prompts"]
    ]
    option_names = {argument: name for name, argument in ARGUMENTS.items()}
    for name in (*_list_sent_options(job), "key", "seed_to", "receipt"):
        if value := members[name]:
            text = (
                "yes"
                if value is True
                else str(value)
                if isinstance(value, str | int)
                else ",".join(value)
            )
            lines.append(
                f"  {option_names.get(name, name).replace('_', '-')}: {render.escape(text)}"
            )
    lines += ["  passcode: yes"] if members["passcode"] else []
    lines += [f"  {row['what']} to {render.escape(row['to'])}" for row in members["send"]]
    render.print_lines(lines)


def _describe_plan(
    job: RequestJob, planned: PlannedRequest, session: Session, receipt: str | None
) -> dict[str, Any]:
    sent = {name: getattr(job, name) for name in _list_sent_options(job)}
    return {
        "dry_run": True,
        "base_url": session.base_url,
        "body_bytes": planned.body_size,
        "prompts": [each._asdict() for each in job.prompts],
        **sent,
        "expires_at": format_optional_time(job.expires_at),
        "passcode": job.passcode is not None,
        "key": job.key,
        "seed_to": None if job.seed_target is None else job.seed_target.text,
        "receipt": receipt,
        "send": [{"what": each.content, "to": str(each)} for each in planned.recipients],
    }


def _list_sent_options(job: RequestJob) -> list[str]:
    """List the options whose values the service can read."""

    return [name for name in RequestMembers.__slots__ if hasattr(job, name) and name != "passcode"]


def _check_seed(values: dict[str, Any]) -> None:
    if values["key"] == "new" and values["seed_to"] is None:
        raise UsageError(
            "--key new needs --seed-to: without the new key's seed, no submission can be opened",
            remedy="add --seed-to SINK, such as --seed-to vault:secret/requests/acme#seed",
        )
