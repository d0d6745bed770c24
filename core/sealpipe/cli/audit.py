"""`sealpipe audit verify`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sealpipe.cli import render
from sealpipe.cli.command import run_config
from sealpipe.errors import AuditError, UsageError
from sealpipe.registry.policies import find_audit_key, verify_audit

_HEAD = re.compile(r"[1-9][0-9]{0,18}:[0-9a-f]{64}")


def verify(log: str, head: str | None, key: str | None, **values: Any) -> None:
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
        heads = verify_audit(path, key, head)
    except OSError as error:
        why = error.strerror
        raise UsageError(
            f"{path} cannot be read: {why}", remedy="check the path and its permissions"
        ) from None
    for number, what in (*heads.remarks, *heads.findings):
        render.print_note(f"line {number} {what}")
    if not heads.keyed:
        render.print_note(
            "not protected by a key: anyone who can write this file can forge it; only "
            "--head proves otherwise"
        )
    elif head is None and not heads.findings:
        render.print_note("lines cut off at the end do not show without --head")
    if heads.findings:
        number, what = heads.findings[0]
        remark = len(heads.findings) - 1
        raise AuditError(
            f"{path}: line {number} {what}" + (f", and {remark} more" if remark else "")
        )
    if values["output"] == "json":
        remarks = [{"line": number, "what": what} for number, what in heads.remarks]
        description = {
            "file": str(path),
            "lines": heads.lines,
            "head": heads.head or None,
            "keyed": heads.keyed,
        }
        render.print_json({**description, "remarks": remarks})
    else:
        render.print_result(
            f"{heads.lines} lines, none changed, removed or added; head {heads.head or 'none'}\n"
        )
