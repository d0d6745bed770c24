"""`sealpipe resume`: options and help."""

from __future__ import annotations

from typing import Any

import click

from sealpipe.cli.command import COMMON, Command, options


@click.command(cls=Command)
@click.argument("entry_id", metavar="[ID]", required=False)
@options("resume", common=COMMON)
def resume(entry_id: str | None, **values: Any) -> None:
    """Finish interrupted shares and requests from the outbox.

    Creates no second share and no second link.

    Without an ID, finish every entry of this CI run (outside CI: every entry made outside CI).
    """
    from sealpipe.cli import resume

    resume.resume(entry_id, **values)
