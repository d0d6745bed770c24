"""`sealpipe audit verify`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from sealpipe.cli import context, render
from sealpipe.cli.options import OFFLINE, Command, SettingsGroup, options
from sealpipe.errors import AuditError, UsageError

_HEAD = re.compile(r"[1-9][0-9]{0,18}:[0-9a-f]{64}")


@click.group(cls=SettingsGroup)
def audit() -> None:
    """Verify an audit log."""


@audit.command(cls=Command)
@click.argument("log", metavar="FILE")
@options("audit", common=OFFLINE)
def verify(log: str, head: str | None, key: str | None, **values: Any) -> None:
    """Verify the chain of an audit log, from the first line to the last. Makes no connection.

    Reports every changed, removed or added line; with --head (which each command that writes the log prints on
    stderr), also lines cut off at the end. The key comes from the config that names this log, or from --key.
    """
    from sealpipe.registry import hooks

    if head is not None and not _HEAD.fullmatch(head):
        raise UsageError("--head is not a valid head", remedy="write it as NUMBER:MARK, as the command printed it")
    path = Path(log).absolute()
    if key is None:
        config = context.run_config()
        machine = config.machine.get("enforce", {})
        key = hooks.audit_key(path, machine, config.user)
    try:
        seen = hooks.verify_audit(path, key, head)
    except OSError as error:
        why = error.strerror
        raise UsageError(f"{path} cannot be read: {why}", remedy="check the path and its permissions") from None
    for number, what in (*seen.remarks, *seen.findings):
        render.print_note(f"line {number} {what}")
    if not seen.keyed:
        render.print_note(
            "not protected by a key: anyone who can write this file can forge it; only --head proves otherwise"
        )
    elif head is None and not seen.findings:
        render.print_note("lines cut off at the end do not show without --head")
    if seen.findings:
        number, what = seen.findings[0]
        more = len(seen.findings) - 1
        raise AuditError(f"{path}: line {number} {what}" + (f", and {more} more" if more else ""))
    if values["output"] == "json":
        remarks = [{"line": number, "what": what} for number, what in seen.remarks]
        told = {"file": str(path), "lines": seen.lines, "head": seen.head or None, "keyed": seen.keyed}
        render.print_json({**told, "remarks": remarks})
    else:
        render.print_result(f"{seen.lines} lines, none changed, removed or added; head {seen.head or 'none'}\n")
