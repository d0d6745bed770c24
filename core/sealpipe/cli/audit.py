"""`sealpipe audit verify` and `audit send`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NoReturn

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
    if key is None:
        config = run_config()
        key = find_audit_key(path, config.machine.get("enforce", {}), config.user)
    try:
        found = verify_audit(path, key, head, collected=collected)
    except OSError as error:
        why = error.strerror
        raise UsageError(
            f"{path} cannot be read: {why}", remedy="check the path and its permissions"
        ) from None
    remarks = () if collected else found.remarks
    for number, what in (*remarks, *found.findings):
        render.print_note(f"line {number} {render.escape(what)}")
    if not found.keyed:
        render.print_note(
            "not protected by a key: anyone who can write this file can forge it; only "
            "--head proves otherwise"
        )
    elif head is None and not found.findings:
        of_chain = " of a chain" if collected else ""
        render.print_note(f"lines cut off at the end{of_chain} do not show without --head")
    if found.findings:
        _raise_findings(path, found.findings)
    description = {"file": str(path), "lines": found.lines, "keyed": found.keyed}
    if collected:
        _print_chains(description, found, values["output"])
    elif values["output"] == "json":
        shown = [{"line": number, "what": what} for number, what in remarks]
        render.print_json({**description, "head": found.head or None, "remarks": shown})
    else:
        render.print_result(
            f"{found.lines} lines, none changed, removed or added; head {found.head or 'none'}\n"
        )


def _raise_findings(path: Path, findings: list[tuple[int, str]]) -> NoReturn:
    number, what = findings[0]
    more = len(findings) - 1
    raise AuditError(
        f"{path}: line {number} {render.escape(what)}" + (f", and {more} more" if more else "")
    )


def _print_chains(description: dict[str, Any], found: Any, output: str) -> None:
    """Print the chains of a collected file, by machine and time."""
    chains = sorted(found.chains.values(), key=lambda each: (each.machine, each.first))
    if output == "json":
        listed = [
            {
                "machine": each.machine,
                "stream": each.stream,
                "lines": len(each.lines),
                "first": each.first,
                "last": each.last,
                "head": each.head,
            }
            for each in chains
        ]
        render.print_json({**description, "repeated": found.repeated, "chains": listed})
        return
    machines = len({each.machine for each in chains})
    summary = (
        f"{render.count(found.lines, 'line')}, {found.repeated} repeated, of "
        f"{render.count(len(chains), 'chain')} on {render.count(machines, 'machine')}; none "
        "changed, missing or added"
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
