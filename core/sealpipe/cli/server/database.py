"""`sealpipe server database` and `sealpipe server purge`."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from sealpipe.cli import render
from sealpipe.cli.server.opening import open_store, read_database, told_in_our_words
from sealpipe.errors import UsageError
from sealpipe_service.database import backing_up, migrating, opening

KEPT = timedelta(days=30)
"""How long an expired request's submissions can be read at the least."""


def upgrade(**values: Any) -> None:
    """Run `sealpipe server database upgrade`."""
    address = read_database(values).reveal()
    with told_in_our_words():
        before, after = migrating.upgrade(address)
    if values["output"] == "json":
        render.print_json({"from": before, "to": after})
        return
    if before == after:
        render.print_note(f"nothing to do: its tables are of version {after}")
    else:
        render.print_note(f"upgraded from {before or 'an empty database'} to version {after}")


def check(**values: Any) -> None:
    """Run `sealpipe server database check`."""
    address = read_database(values).reveal()
    with told_in_our_words():
        opening.check(address)
        name = opening.describe(address)
    if values["output"] == "json":
        render.print_json({"database": name, "usable": True})
    else:
        render.print_note(f"usable: {render.escape(name)}")


def backup(file: str, **values: Any) -> None:
    """Run `sealpipe server database backup`."""
    address = read_database(values).reveal()
    if os.path.lexists(file):
        raise UsageError(f"{render.escape(file)} exists", remedy="give the path of a new file")
    with told_in_our_words():
        backing_up.backup(address, Path(file))
    if values["output"] == "json":
        render.print_json({"file": file})
    else:
        render.print_note(f"copied to {render.escape(file)}: it holds all that the database does")


def purge(**values: Any) -> None:
    """Run `sealpipe server purge`."""
    older_than: timedelta | None = values["older_than"]
    if older_than is None:
        raise UsageError("what to delete is not said", remedy="add --older-than 30d")
    if older_than < KEPT and not values["force"]:
        raise UsageError(
            "submissions of requests that ended less than 30 days ago would be deleted for good",
            remedy="write --older-than 30d or longer, or add --force",
        )
    with open_store(values) as store:
        store.sweep()
        requests, submissions = store.purge(older_than.total_seconds())
        store.scrub()
    if values["output"] == "json":
        render.print_json({"requests": requests, "submissions": submissions})
        return
    render.print_note(
        f"deleted {render.count(requests, 'request')} with "
        f"{render.count(submissions, 'submission')}"
    )
