"""Putting a share's link where it belongs, and only then ending its outbox entry."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sealpipe.cli import output
from sealpipe.errors import NotDelivered, StateError, UsageError
from sealpipe.flows.share import Share
from sealpipe.state import files
from sealpipe.state.entry import kept
from sealpipe.times import format_time

Targets = Mapping[str, str | None]
"""Where link and receipt go: absolute paths, None for stdout or for none at all."""


def targets(link_file: str | None, receipt: str | None) -> dict[str, str | None]:
    """Both paths, checked before anything is sent: new files in folders that are there."""
    found: dict[str, str | None] = {"link_file": link_file, "receipt": receipt}
    for name, text in found.items():
        if text is None:
            continue
        path, option = Path(text).absolute(), "--" + name.replace("_", "-")
        if os.path.lexists(path):
            raise UsageError(f"{option}: {path} exists already", remedy="remove it, or name another file")
        if not path.parent.is_dir():
            raise UsageError(f"{option}: the folder {path.parent} does not exist", remedy="make it, or name another")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise UsageError(f"{option}: the folder {path.parent} cannot be written", remedy="name another file")
        found[name] = str(path)
    if found["link_file"] is not None and found["link_file"] == found["receipt"]:
        raise UsageError("--link-file and --receipt name the same file", remedy="give each its own")
    return found


def refuse_open_log(link_file: str | None) -> None:
    """GitLab masks nothing that we print: there a link needs another way out (DESIGN 6.7)."""
    if os.environ.get("GITLAB_CI") and link_file is None:
        raise UsageError(
            "in a GitLab job the link would stand in the log for everybody to read",
            remedy="name a file for it with --link-file",
        )


def announce(share: Share) -> None:
    """Tell people, as soon as the service has answered."""
    ends = "does not expire" if share.expires_at is None else f"expires {format_time(share.expires_at)}"
    output.note(f"created {output.printable(share.short_code)}, {ends}")
    for remark in share.remarks:
        output.note(output.printable(remark))
    for warning in share.warnings:
        output.note(f"sealpipe: {warning}")


def deliver(share: Share, to: Targets) -> None:
    """Receipt and link file. NotDelivered where one cannot be written: the entry is kept."""
    contents = {"receipt": _receipt(share), "link_file": share.link.reveal() + "\n"}
    for name, content in contents.items():
        path = to.get(name)
        if path is not None:
            _write(Path(path), content.encode(), share)


def describe(share: Share, to: Targets) -> dict[str, Any]:
    """The share as JSON members. With a link file, the link is in that file and nowhere else."""
    return {
        "link": None if to.get("link_file") else share.link.reveal(),
        "short_code": share.short_code,
        "expires_at": None if share.expires_at is None else format_time(share.expires_at),
        "custody": share.custody,
        "outcome": share.outcome,
        "title": share.title,
        "delivered": [name.replace("_", "-") for name, path in to.items() if path],
    }


def finish(share: Share, to: Targets, *, as_json: bool) -> None:
    """Tell, deliver, print, and end the entry: one share, one link, whatever is killed when."""
    with kept(share.entry):
        announce(share)
        try:
            deliver(share, to)
            if as_json:
                output.json_result(describe(share, to))
            elif not to.get("link_file"):
                output.result(share.link.reveal() + "\n")
        except NotDelivered as error:
            entry_id = error.outbox_id = share.entry.id if share.entry else None
            error.remedy = f"the share {share.short_code} exists; `sealpipe resume {entry_id}` delivers its link"
            raise
        try:
            share.delivered()
        except StateError as error:
            output.note(f"sealpipe: {error.message}")
            output.note(f"  {error.remedy}")


def _write(path: Path, content: bytes, share: Share) -> None:
    """Write a new file; one that holds the same already was written before a kill."""
    try:
        files.create(path, lambda: [content])
    except OSError as error:
        if isinstance(error, FileExistsError) and _holds(path, content):
            return
        raise NotDelivered(
            f"{path} could not be written: {error.strerror}",
            outbox_id=share.entry.id if share.entry else None,
        ) from None


def _holds(path: Path, content: bytes) -> bool:
    try:
        return not path.is_symlink() and path.read_bytes() == content
    except OSError:
        return False


def _receipt(share: Share) -> str:
    members = {"schema": output.SCHEMA, "kind": "share", **describe(share, {"link_file": "elsewhere"})}
    del members["link"], members["delivered"], members["outcome"]
    return json.dumps(members) + "\n"
