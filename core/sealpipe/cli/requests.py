"""`sealpipe request`, and `sealpipe requests list | show | submissions | link | remind | expire |
purge`.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from sealpipe.cli import render
from sealpipe.cli.codes import CodeCommand, resolve_request_code
from sealpipe.cli.command import (
    COMMON,
    EXPIRY,
    Command,
    SettingsGroup,
    call_arguments,
    choose_expiry,
    find_state_folder,
    make_session,
    open_client,
    open_outbox,
    options,
)
from sealpipe.cli.expire import expire_requests, note_skipped, report_ended
from sealpipe.cli.known_names import UNKNOWN
from sealpipe.cli.requests_link import link, remind
from sealpipe.cli.requests_list import COLUMNS, KnownRequests, list_requests
from sealpipe.errors import UsageError
from sealpipe.parsing import format_time
from sealpipe.settings import ARGUMENTS

if TYPE_CHECKING:
    from sealpipe.api.requests import Submission
    from sealpipe.request.create import PlannedRequest
    from sealpipe.request.options import RequestJob
    from sealpipe.session import Session


class _RequestCommand(Command):
    unexpected_remedy = (
        "write each prompt with -a, such as -a 'Staging password', and pass every value with its "
        "option: see `sealpipe request --help`"
    )


@click.command(cls=_RequestCommand)
@options("request", common=COMMON)
@click.pass_context
def request(ctx: click.Context, /, **values: Any) -> None:
    """Create a collect link to ask someone for secrets.

    The service never has the key that opens them.

    Prints the collect link on stdout; anyone with the link can submit, but not read. A prompt that
    does not end in the :TYPE of a field asks for a password.

    sealpipe request -a 'Staging password' -a 'user=User name:text' --receipt acme.json
    """
    from sealpipe.cli import deliver, disclosure
    from sealpipe.client_base import connect
    from sealpipe.request import create as requesting
    from sealpipe.request.options import plan_request

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
        "expires_at": None if job.expires_at is None else format_time(job.expires_at),
        "passcode": job.passcode is not None,
        "key": job.key,
        "seed_to": None if job.seed_target is None else job.seed_target.text,
        "receipt": receipt,
        "send": [{"what": each.content, "to": str(each)} for each in planned.recipients],
    }


def _list_sent_options(job: RequestJob) -> list[str]:
    """List the options whose values the service can read."""
    from sealpipe.api.requests import RequestMembers

    return [name for name in RequestMembers.__slots__ if hasattr(job, name) and name != "passcode"]


def _check_seed(values: dict[str, Any]) -> None:
    if values["key"] == "new" and values["seed_to"] is None:
        raise UsageError(
            "--key new needs --seed-to: without the new key's seed, no submission can be opened",
            remedy="add --seed-to SINK, such as --seed-to vault:secret/requests/acme#seed",
        )


@click.group(cls=SettingsGroup)
def requests() -> None:
    """List, show, remind of, expire and purge requests, and list submissions.

    `sealpipe collect` decrypts them.
    """


for _command in (list_requests, link, remind, expire_requests):
    requests.add_command(_command)


@requests.command(cls=CodeCommand)
@click.argument("code")
@options("", common=COMMON)
def show(code: str, **values: Any) -> None:
    """Show what the service knows about a request. Changes nothing."""
    with open_client(values) as client:
        known = KnownRequests(client, values)
        row = client.get_request(resolve_request_code(client, code))
    if values["output"] == "json":
        render.print_json(known.describe(row))
    else:
        render.print_table(COLUMNS, [known.list_cells(row)])


@requests.command(cls=CodeCommand)
@click.argument("code")
@options("", common=COMMON)
def submissions(code: str, **values: Any) -> None:
    """List the submissions to a request: code, time and size of each. Decrypts nothing.

    --output json includes the ciphertext.
    """
    with open_client(values) as client:
        code = resolve_request_code(client, code)
        page = client.list_submissions(code)
    if values["output"] == "json":
        rows = [_describe_submission(row) for row in page.items]
        render.print_json(
            {"short_code": code, "submissions": rows, "count": page.count, "skipped": page.skipped}
        )
    else:
        render.print_lines(map(_format_submission, page.items))
    note_skipped(page.skipped)


@requests.command(cls=CodeCommand)
@click.argument("code")
@options("purge", common=())
@options("", common=COMMON)
def purge(code: str, confirm: str | None, **values: Any) -> None:
    """Delete a request and all its submissions from the service, for good. Needs --confirm CODE.

    Stores the ciphertext of every submission in the state directory.
    """
    from sealpipe.lookup import confirm_code
    from sealpipe.wire.encoding import names

    code_to_purge = confirm_code(code, confirm or "")
    confirmed = code_to_purge if names(confirm or "", code_to_purge) else confirm or ""
    with open_client(values) as client:
        ended = client.purge_request(
            code_to_purge, confirm=confirmed, keep=find_state_folder(values, "requests")
        )
    row = report_ended(ended)
    if values["output"] == "json":
        render.print_json(row)


def _describe_submission(row: Submission) -> dict[str, Any]:
    created = None if row.created_at is None else format_time(row.created_at)
    members = {
        "short_code": row.short_code,
        "created_at": created,
        "bytes": _measure_box(row),
        "data": row.data,
    }
    return {**row.extra, **members, "encryption_type": row.encryption_type}


def _format_submission(row: Submission) -> str:
    created = UNKNOWN if row.created_at is None else format_time(row.created_at)
    return "\t".join(
        (render.escape(row.short_code or UNKNOWN), created, f"{_measure_box(row)} bytes")
    )


def _measure_box(row: Submission) -> int:
    """Return the size of the sealed box in bytes, without decoding it: the data may be invalid."""
    data = row.data or ""
    return len(data) * 3 // 4 - data[-2:].count("=")
