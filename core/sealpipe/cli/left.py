"""`sealpipe resume --list`: what is in the outbox and, where the credential opens it, what is left to do."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from sealpipe.cli import context, render
from sealpipe.errors import SealpipeError

if TYPE_CHECKING:
    from sealpipe.credential import Credential
    from sealpipe.state.entry import Entry
    from sealpipe.state.outbox import Outbox


def list_left(values: dict[str, Any]) -> None:
    """Tell; change nothing. An entry that does not open is listed by what stands outside of it."""
    from sealpipe.times import format_time

    outbox = context.outbox(values, _credential(values))
    rows: list[dict[str, Any]] = []
    for found in outbox.list(every_run=values["all"]):
        told = {"id": found.id, "key_id": found.key_id, "created_at": format_time(found.created_at), "run": found.run}
        rows.append({**told, "kind": None, "short_code": None, "left": None, **_inside(outbox, found.id)})
        rows[-1] |= {"damage": found.damage} if found.damage else {}
    if values["output"] == "json":
        render.json_result({"entries": rows})
        return
    render.lines(map(_line, rows))


def _line(row: dict[str, Any]) -> str:
    if "damage" in row:
        return f"{row['id']}\tdamaged: {row['damage']}"
    parts = [row["id"], row["created_at"], f"key {row['key_id']}"]
    parts += [f"run {row['run']}"] if row["run"] else []
    parts += [" ".join(filter(None, (row["kind"], row["short_code"])))] if row["kind"] else []
    left = [f"{each['what']} to {each['to']} ({each['state']})" for each in row["left"] or ()]
    parts += [f"left: {', '.join(left)}"] if left else []
    return "\t".join(render.printable(part) for part in parts)


def _credential(values: dict[str, Any]) -> Credential | None:
    from sealpipe.config import api_key
    from sealpipe.flows.session import open_credential

    try:
        key = api_key(os.environ, values["api_key_file"])
        return open_credential(key, values["service_tag"]) if key else None
    except SealpipeError:
        return None  # what stands outside can be told without


def _inside(outbox: Outbox, entry_id: str) -> dict[str, Any]:
    try:
        entry = outbox.open(entry_id)
    except SealpipeError:
        return {}
    if isinstance(entry, str):
        return {"left": [{"what": "entry", "to": "the service", "state": entry}]}
    try:
        code = (entry.answered or {}).get("short_code")
        return {"kind": entry.meta["kind"], "short_code": code, "left": _left(entry)}
    finally:
        entry.close()


def _left(entry: Entry) -> list[dict[str, str]]:
    """What is not out yet: the share or request itself, its messages, its files or its line on stdout."""
    recipients = entry.meta.get("recipients", ())
    states = [entry.deliveries.get(number, "pending") for number in range(len(recipients))]
    left = [] if entry.answered else [{"what": entry.meta["kind"], "to": "the service", "state": "not answered"}]
    if not (entry.stored or entry.answered):
        left += [{"what": "fields", "to": shown, "state": "not stored"} for shown in entry.meta.get("also_to", ())]
    left += [
        {"what": what, "to": shown, "state": state}
        for (what, _, _, shown), state in zip(recipients, states, strict=True)
        if state != "sent"
    ]
    to = entry.meta.get("deliver") or {}
    if not to.get("link_file") and not to.get("seal_link") and all(row[0] != "link" for row in recipients):
        to = {**to, "stdout": "stdout"}
    files = {"link_file": "link", "seal_link": "sealed link", "receipt": "receipt", "stdout": "link"}
    rows = [{"what": what, "to": to[name], "state": "pending"} for name, what in files.items() if to.get(name)]
    return left + rows
