"""`sealpipe audit verify` and `audit send`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sealpipe.cli import local, render
from sealpipe.cli.command import run_config
from sealpipe.errors import AuditError, UsageError
from sealpipe.registry.policies import find_audit_key, send_audit, verify_audit

_HEAD = re.compile(r"[1-9][0-9]{0,18}:[0-9a-f]{64}")


def send(**values: Any) -> None:
    """Run `sealpipe audit send`."""
    context = local.open_context(values)
    sent = local.work_locally(
        context, lambda: list(send_audit(context.policy_hooks, context.registry().make_context))
    )
    if not sent:
        raise UsageError(
            "no audit log has a webhook", remedy="set `url` in [audit.webhook] of the config file"
        )
    if values["output"] == "json":
        render.print_json({"logs": [{"file": str(file), "lines": lines} for file, lines in sent]})
        return
    render.print_lines([f"{file}: {render.count(lines, 'line')} sent" for file, lines in sent])


def verify(log: str, head: str | None, key: str | None, *, collected: bool, **values: Any) -> None:
    """Run `sealpipe audit verify`."""
    if head is not None and not _HEAD.fullmatch(head):
        raise UsageError(
            "--head is not a valid head",
            remedy="write it as NUMBER:MARK, as the command printed it",
        )
    path = Path(log).absolute()
    remedy = "correct --key"
    if key is None:
        config = run_config()
        key = find_audit_key(path, config.machine.get("enforce", {}), config.user)
        remedy = "correct `key` in [audit]"
    try:
        found = verify_audit(path, key, head, collected=collected, remedy=remedy)
    except OSError as error:
        why = error.strerror
        raise UsageError(
            f"{path} cannot be read: {why}", remedy="check the path and its permissions"
        ) from None
    if not found.keyed and found.kinds[True] and not found.kinds[False]:
        or_config = "" if collected else ", or set `key` in the config that names this file"
        raise UsageError(
            f"{path} is protected by a key, and cannot be verified without it",
            remedy=f"give the key with --key file:/PATH or --key env:NAME{or_config}",
        )
    for number, what in (*found.remarks, *found.findings):
        render.print_note(f"line {number} {render.escape(what)}")
    if note := _describe_limits(found, head, collected=collected):
        render.print_note(note)
    if found.findings and not collected:
        raise _make_error(path, found)
    members = {"file": str(path), "lines": found.lines, "keyed": found.keyed}
    members["remarks"] = _list_by_line(found.remarks)
    if collected:
        _print_chains(members, found, values["output"])
    elif values["output"] == "json":
        render.print_json({**members, "head": found.head or None})
    else:
        count = render.count(found.lines, "line")
        render.print_result(
            f"{count}, none changed, removed or added; head {found.head or 'none'}\n"
        )
    if found.findings:
        raise _make_error(path, found)


def _describe_limits(found: Any, head: str | None, *, collected: bool) -> str:
    """Return what this verification cannot find; empty if nothing, or if it found something."""
    if not found.lines:
        return "the file has no line: there was nothing to verify"
    if not found.keyed:
        return (
            "not protected by a key: anyone who can write this file can forge it; only --head "
            "proves otherwise"
        )
    if head is None and not found.findings:
        of_chain = " of a chain" if collected else ""
        return f"lines cut off at the end{of_chain} do not show without --head"
    return ""


def _make_error(path: Path, found: Any) -> AuditError:
    number, what = found.findings[0]
    more = len(found.findings) - 1
    needs_key = not found.keyed and found.kinds[True]
    return AuditError(
        f"{path}: line {number} {render.escape(what)}" + (f", and {more} more" if more else ""),
        remedy=f"give the key with --key; {AuditError.default_remedy}" if needs_key else None,
    )


def _list_by_line(found: list[tuple[int, str]]) -> list[dict[str, Any]]:
    return [{"line": number, "what": what} for number, what in found]


def _print_chains(members: dict[str, Any], found: Any, output: str) -> None:
    """Print the chains of a collected file, by machine and time; also if there are findings."""
    chains = sorted(found.chains.values(), key=lambda each: (each.machine, each.first))
    if output == "json":
        listed = [
            {
                "machines": sorted(each.machines),
                "stream": each.stream,
                "lines": len(each.lines),
                "first": each.first,
                "last": each.last,
                "head": each.head,
            }
            for each in chains
        ]
        findings = _list_by_line(found.findings)
        render.print_json(
            {**members, "findings": findings, "repeated": found.repeated, "chains": listed}
        )
        return
    machines = len({name for each in chains for name in each.machines})
    result = (
        render.count(len(found.findings), "finding")
        if found.findings
        else "none changed, missing or added"
    )
    summary = (
        f"{render.count(found.lines, 'line')}, {found.repeated} repeated, of "
        f"{render.count(len(chains), 'chain')} on {render.count(machines, 'machine')}; {result}"
    )
    rows = [
        (
            each.machine,
            each.stream,
            render.count(len(each.lines), "line"),
            each.first,
            each.last,
            each.head,
        )
        for each in chains
    ]
    render.print_lines([summary, *("\t".join(row) for row in rows)])
