"""`sealpipe share`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from importlib import import_module
from typing import Any

import click
from click.core import ParameterSource

from sealpipe.api.shares import ShareMembers
from sealpipe.cli import deliver, disclosure, render
from sealpipe.cli.command import EXPIRY, call_arguments, choose_expiry
from sealpipe.cli.deliver import Targets
from sealpipe.cli.local import find_state_folder
from sealpipe.cli.opening import make_session, open_outbox
from sealpipe.client_base import connect
from sealpipe.errors import UsageError
from sealpipe.parsing import format_optional_time
from sealpipe.reference import FieldSpec
from sealpipe.session import Session
from sealpipe.share import post as sharing
from sealpipe.share.options import ShareJob, plan_share
from sealpipe.share.seal import SealedShare
from sealpipe.wire.fields import Field


def share(ctx: click.Context, /, **values: Any) -> None:
    """Run `sealpipe share`."""
    if ctx.get_parameter_source("bind") is ParameterSource.COMMANDLINE and not values["seal_link"]:
        raise UsageError("--bind needs --seal-link", remedy="add --seal-link, or leave --bind out")
    to = {
        **deliver.check_targets(values["link_file"], values["receipt"], values["name"]),
        **deliver.describe_seal_target(values["bind"], wanted=values["seal_link"]),
    }
    values["field"] = _join_fields(ctx, values)
    arguments = call_arguments("share", plan_share, values, but=EXPIRY)
    arguments["message_template"] = deliver.read_message_template(values["message_template"])
    job = plan_share(**arguments, **choose_expiry(ctx, values, (*EXPIRY, "no_expiry")))
    _note_text(job.fields)
    session = make_session(values, job.needs)
    gate = disclosure.plan_disclosure(
        "the link",
        "send it with --send, write it to a file with --link-file, or seal it with --seal-link",
        printing=values["print"],
        elsewhere=bool(values["link_file"] or values["send"] or values["seal_link"]),
        dry_run=values["dry_run"],
        addresses=[session.base_url, session.link_base_url],
    )
    deliver.check_seal(session, to)
    disclosure.get_ci(session.registry)  # if it cannot be used, nothing is sent
    as_json = values["output"] == "json"
    # Before the outbox has an entry; commands without a service do not need it.
    import_module("sealpipe.network.service_network")
    with closing(connect(session)):
        if values["dry_run"]:
            _print_plan(job, sharing.plan_dry_run(session, job), session, to, as_json=as_json)
            return
        outbox = open_outbox(values, session.credential)
        created = sharing.share(session, job, outbox, deliver=to)
        deliver.finish(
            session,
            created,
            to,
            gate,
            created=find_state_folder(values, "created"),
            as_json=as_json,
        )


def _join_fields(ctx: click.Context, values: Mapping[str, Any]) -> tuple[FieldSpec, ...]:
    """Return the fields of -f, then the bare references, which also replace those of the variable
    and of the config file.
    """
    bare: tuple[FieldSpec, ...] = values["references"]
    is_typed = ctx.get_parameter_source("field") is ParameterSource.COMMANDLINE
    return (*values["field"], *bare) if is_typed or not bare else bare


def _note_text(specs: Sequence[Field | FieldSpec]) -> None:
    """Tell a person at a terminal what becomes of a `text:` without a label."""
    if render.is_terminal() and any(
        isinstance(each, FieldSpec) and _is_bare_text(each) for each in specs
    ):
        from sealpipe.sources.text_secrets import ALTERNATIVES  # for this note only

        render.print_note(
            "note: the shell's history stores what stands after text:. For a secret, "
            f"{ALTERNATIVES}"
        )


def _is_bare_text(spec: FieldSpec) -> bool:
    return spec.ref.name == "text" and spec.label is None


def _print_plan(
    job: ShareJob, sealed: SealedShare, session: Session, to: Targets, *, as_json: bool
) -> None:
    """Print what the command would do, without values.

    The sources have been read and the share is sealed.
    """
    members = _describe_plan(job, sealed, session, to)
    if as_json:
        render.print_json(members)
        return
    lines = [f"would post to {members['base_url']}/shares ({members['body_bytes']} bytes)"]
    lines += [f"  field {render.escape(row['key'])} ({row['type']})" for row in members["fields"]]
    for name in (*_list_sent_options(job), "custody", "link_file", "receipt"):
        if value := members[name]:
            text = str(value) if isinstance(value, str | int) else ",".join(value)
            lines.append(f"  {name.replace('_', '-')}: {render.escape(text)}")
    lines += ["  passcode: yes"] if members["passcode"] else []
    lines += [f"  {row['what']} to {render.escape(row['to'])}" for row in members["send"]]
    lines += [f"  also {render.escape(words)}" for words in sealed.planned_writes]
    lines += [f"  {render.escape(remark)}" for remark in (*sealed.remarks, *sealed.warnings)]
    render.print_lines(lines)


def _list_sent_options(job: ShareJob) -> list[str]:
    """List the options whose values the service can read."""

    return [name for name in ShareMembers.__slots__ if hasattr(job, name)]


def _describe_plan(
    job: ShareJob, sealed: SealedShare, session: Session, to: Targets
) -> dict[str, Any]:

    return {
        "dry_run": True,
        "base_url": session.base_url,
        "body_bytes": len(sealed.body),
        "fields": [{"key": key, "type": kind} for key, kind in sealed.labels],
        **{name: getattr(job, name) for name in _list_sent_options(job)},
        "expires_at": format_optional_time(sealed.expires_at),
        "views": "unlimited" if job.views is None else job.views,
        "passcode": sealed.passcode is not None,
        "custody": job.custody if sealed.wrap_at is not None else "none",
        "link_file": to["link_file"],
        "receipt": to["receipt"],
        "send": [{"what": each.content, "to": str(each)} for each in sealed.recipients],
        "also_to": sealed.planned_writes,
        "remarks": (*sealed.remarks, *sealed.warnings),
    }
