"""`sealpipe shares wait`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from sealpipe.cli import render
from sealpipe.cli.code_lists import resolve_share_code
from sealpipe.cli.codes import names_receipt
from sealpipe.cli.known_names import KnownNames, find_notes_folder
from sealpipe.cli.opening import open_client
from sealpipe.client import Client
from sealpipe.share.wait import Progress, WaitJob, wait_for_share
from sealpipe.state.creations import KnownLink
from sealpipe.state.receipt import read_share_receipt

_QUIET_INTERVAL: Final = 300.0
"""Seconds between two lines of progress."""


def wait(word: str, **values: Any) -> None:
    """Run `sealpipe shares wait`."""
    receipt = _read_receipt(word)
    with open_client(values) as client:
        known = receipt or _find_known(client, word, values)
        code = render.escape(known.short_code)
        job = WaitJob(
            known.short_code,
            values["until"],
            values["for"].total_seconds(),
            known.is_used_up_by_opening,
            known.created_at,
            expire=values["else"] == "expire",
            keep=find_notes_folder(values, "shares"),
        )
        outcome = wait_for_share(client.session, job, _Report(code))
    if problem := outcome.problem():
        raise problem
    if values["output"] == "json":
        render.print_json(
            {
                "short_code": known.short_code,
                "until": job.until,
                "opened": outcome.opened,
                "ended": outcome.has_ended,
            }
        )
    else:
        render.print_note(f"{code} {outcome.describe()}")


def _read_receipt(word: str) -> KnownLink | None:
    """Return what a receipt says, before the service is asked; None if the word is a code."""
    path = Path(word)
    return read_share_receipt(path) if names_receipt(word) and path.is_file() else None


def _find_known(client: Client, word: str, values: Mapping[str, Any]) -> KnownLink:
    code, base_url = resolve_share_code(client, word), client.session.base_url
    return KnownNames(values, "share", base_url).find(code) or KnownLink("share", base_url, code)


class _Report:
    """Prints that it is waiting, and what goes wrong, at most every five minutes each."""

    def __init__(self, code: str) -> None:
        self._code = code
        self._printed_at: dict[str, float] = {}

    def __call__(self, progress: Progress) -> None:
        text = f"{progress.trouble}; still waiting" if progress.trouble else "waiting"
        now = time.monotonic()
        if now - self._printed_at.get(text, -_QUIET_INTERVAL) >= _QUIET_INTERVAL:
            self._printed_at[text] = now
            left = render.format_duration(progress.left)
            render.print_note(f"{self._code}: {render.escape(text)}, {left} left")
