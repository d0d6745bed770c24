"""What `share --dry-run` tells: everything that would be done, without a value and without sending."""

from __future__ import annotations

from typing import Any

from sealpipe.cli import render
from sealpipe.cli.deliver import Targets
from sealpipe.flows.session import Session
from sealpipe.flows.share.post import SealedShare, SharePlan
from sealpipe.times import format_time


def show(plan: SharePlan, sealed: SealedShare, session: Session, to: Targets, *, as_json: bool) -> None:
    """Print the plan. The sources were read and the share was sealed, so both are known to work."""
    members = _members(plan, sealed, session, to)
    if as_json:
        render.json_result(members)
        return
    lines = [f"would post to {members['base_url']}/shares ({members['body_bytes']} bytes)"]
    lines += [f"  field {render.printable(row['key'])} ({row['type']})" for row in members["fields"]]
    told = ("title", "description", "expires_at", "views", "timed_view", "custody", "link_file", "receipt")
    lines += [f"  {name.replace('_', '-')}: {render.printable(members[name])}" for name in told if members[name]]
    lines += [f"  notify-on: {','.join(plan.notify_on)}"] if plan.notify_on else []
    lines += ["  passcode: yes"] if members["passcode"] else []
    lines += [f"  {row['what']} to {render.printable(row['to'])}" for row in members["send"]]
    lines += [f"  also {render.printable(words)}" for words in sealed.stores]
    lines += [f"  {render.printable(remark)}" for remark in sealed.remarks]
    render.lines(lines)


def _members(plan: SharePlan, sealed: SealedShare, session: Session, to: Targets) -> dict[str, Any]:
    return {
        "dry_run": True,
        "base_url": session.base_url,
        "body_bytes": len(sealed.body),
        "fields": [{"key": key, "type": kind} for key, kind in sealed.labels],
        "title": plan.title,
        "description": plan.description,
        "expires_at": None if sealed.expires_at is None else format_time(sealed.expires_at),
        "views": "unlimited" if plan.views is None else plan.views,
        "timed_view": plan.timed_view,
        "notify_on": plan.notify_on,
        "passcode": sealed.passcode is not None,
        "custody": plan.custody if sealed.wrap_at is not None else "none",
        "link_file": to["link_file"],
        "receipt": to["receipt"],
        "send": [{"what": each.what, "to": str(each)} for each in sealed.recipients],
        "also_to": sealed.stores,
        "remarks": sealed.remarks,
    }
