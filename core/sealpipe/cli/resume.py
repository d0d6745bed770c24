"""`sealpipe resume`: what an interrupted share left in the outbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sealpipe.cli import context, output
from sealpipe.cli.options import Command, options
from sealpipe.errors import SealpipeError, StateError, UsageError
from sealpipe.times import format_time

if TYPE_CHECKING:
    from sealpipe.client.sync import Client
    from sealpipe.state.outbox import Outbox

FIRST = (11, 14, 13, 15)
"""Which exit code stands for several at once (DESIGN section 3)."""


@click.command(cls=Command)
@click.argument("entry_id", metavar="[ID]", required=False)
@options("resume", common=context.COMMON)
def resume(entry_id: str | None, **values: Any) -> None:
    """Finish what an interrupted share left in the outbox: the same share, the same link.

    Without an ID, every entry of this CI run (outside CI: every entry made outside CI).
    """
    if values["list"]:
        _list(context.outbox(values, None), every_run=values["all"], as_json=values["output"] == "json")
        return
    if values["discard"]:
        if entry_id is None:
            raise UsageError("--discard drops one entry for good", remedy="name its ID; --list tells which there are")
        context.outbox(values, None).discard(entry_id)
        output.note(f"discarded {entry_id}")
        return
    _finish_all(entry_id, values)


def _finish_all(entry_id: str | None, values: dict[str, Any]) -> None:
    from sealpipe.client.sync import Client

    session = context.session(values)
    outbox = context.outbox(values, session.credential)
    names = [entry_id] if entry_id else [listed.id for listed in outbox.list(every_run=values["all"])]
    errors: list[SealpipeError] = []
    with Client.of_session(session) as client:
        for name in names:
            try:
                _finish(client, outbox, name, asked_for=entry_id is not None, as_json=values["output"] == "json")
            except SealpipeError as error:
                errors.append(error)
    if not names:
        output.note("nothing is left to resume")
    errors.sort(key=lambda error: FIRST.index(error.exit_code) if error.exit_code in FIRST else len(FIRST))
    for other in errors[1:]:
        output.note(f"sealpipe: {other.message}")
    if errors:
        raise errors[0]


def _finish(client: Client, outbox: Outbox, name: str, *, asked_for: bool, as_json: bool) -> None:
    from sealpipe.cli import deliver

    entry = outbox.open(name)
    if isinstance(entry, str):
        if asked_for:
            why = "another process works on it" if entry == "busy" else "there is no such entry"
            raise StateError(
                f"outbox entry {name}: {why}", remedy="`sealpipe resume --list --all` tells which there are"
            )
        return
    to = entry.meta.get("deliver") or {}
    deliver.refuse_open_log(to.get("link_file"))
    share = client.resume(entry)
    deliver.finish(share, to, as_json=as_json)


def _list(outbox: Outbox, *, every_run: bool, as_json: bool) -> None:
    rows = outbox.list(every_run=every_run)
    if as_json:
        entries = [
            {"id": row.id, "key_id": row.key_id, "created_at": format_time(row.created_at), "run": row.run}
            for row in rows
        ]
        output.json_result({"entries": entries})
        return
    for row in rows:
        run = f"\trun {output.printable(row.run)}" if row.run else ""
        output.result(f"{row.id}\t{format_time(row.created_at)}\tkey {output.printable(row.key_id)}{run}\n")
