"""`sealpipe resume`: what an interrupted share or request left in the outbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sealpipe.cli import context, render
from sealpipe.cli.left import list_left
from sealpipe.cli.options import Command, options
from sealpipe.errors import SealpipeError, StateError, UsageError

if TYPE_CHECKING:
    from sealpipe.client import Client
    from sealpipe.state.outbox import Outbox

FIRST = (11, 14, 13, 15)
"""Which exit code stands for several at once (DESIGN section 3)."""


@click.command(cls=Command)
@click.argument("entry_id", metavar="[ID]", required=False)
@options("resume", common=context.COMMON)
def resume(entry_id: str | None, **values: Any) -> None:
    """Finish what an interrupted share or request left in the outbox: the same one, the same link.

    Without an ID, every entry of this CI run (outside CI: every entry made outside CI).
    """
    if values["list"]:
        list_left(values)
        return
    if values["discard"]:
        if entry_id is None:
            raise UsageError("--discard drops one entry for good", remedy="name its ID; --list tells which there are")
        context.outbox(values, None).discard(entry_id)
        render.note(f"discarded {entry_id}")
        return
    _finish_all(entry_id, values)


def _finish_all(entry_id: str | None, values: dict[str, Any]) -> None:
    from sealpipe.client import Client

    session = context.session(values)
    outbox = context.outbox(values, session.credential)
    names = [entry_id] if entry_id else [listed.id for listed in outbox.list(every_run=values["all"])]
    errors: list[SealpipeError] = []
    with Client.of_session(session) as client:
        for name in names:
            try:
                _finish(client, outbox, name, values, asked_for=entry_id is not None)
            except SealpipeError as error:
                errors.append(error)
    if not names:
        render.note("nothing is left to resume")
    errors.sort(key=lambda error: FIRST.index(error.exit_code) if error.exit_code in FIRST else len(FIRST))
    for other in errors[1:]:
        render.note(f"sealpipe: {other.message}")
    if errors:
        raise errors[0]


def _finish(client: Client, outbox: Outbox, name: str, values: dict[str, Any], *, asked_for: bool) -> None:
    from sealpipe.cli import deliver, disclosure
    from sealpipe.flows.resume import resume as resuming
    from sealpipe.state.entry import kept

    entry = outbox.open(name)
    if isinstance(entry, str):
        if asked_for:
            why = "another process works on it" if entry == "busy" else "there is no such entry"
            raise StateError(
                f"outbox entry {name}: {why}", remedy="`sealpipe resume --list --all` tells which there are"
            )
        return
    to = entry.meta.get("deliver") or {}
    sends_link = any(row[0] == "link" for row in entry.meta.get("recipients", ()))
    with kept(entry):
        leave = disclosure.plan(
            f"the link of outbox entry {name}",
            "resume it outside CI",
            printing=values["print"],
            # A collect link opens nothing.
            elsewhere=bool(entry.meta["kind"] != "share" or to.get("link_file") or to.get("seal_link") or sends_link),
            addresses=[entry.meta["base_url"], entry.meta["link_base_url"]],
        )
    share = client.run(resuming(client.session, entry, resend=values["resend"]))
    deliver.finish(client, share, to, leave, as_json=values["output"] == "json", resend=values["resend"])
