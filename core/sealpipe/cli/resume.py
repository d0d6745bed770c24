"""`sealpipe resume`: finish, list or discard entries of interrupted shares and requests."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from sealpipe.api.operation import Credential
from sealpipe.cli import deliver, disclosure, render
from sealpipe.cli.command import run_config
from sealpipe.cli.local import find_state_folder
from sealpipe.cli.opening import make_session, open_outbox
from sealpipe.client_base import connect
from sealpipe.errors import SealpipeError, StateError, UsageError
from sealpipe.parsing import format_time
from sealpipe.resume import finish_entry
from sealpipe.session import Session, open_credential
from sealpipe.state.entry import Entry, keep_entry_on_error
from sealpipe.state.outbox import Outbox

EXIT_CODE_PRIORITY = (11, 14, 13, 15)
"""Exit codes that win over others if several entries fail, the strongest first."""


def resume(entry_id: str | None, **values: Any) -> None:
    """Run `sealpipe resume`."""
    if values["list"]:
        _print_entries(values)
        return
    if values["discard"]:
        if entry_id is None:
            raise UsageError(
                "--discard needs the ID of one entry",
                remedy="find the ID with `sealpipe resume --list`",
            )
        open_outbox(values, None).discard(entry_id)
        render.print_note(f"discarded {entry_id}")
        return
    _finish_all(entry_id, values)


def _finish_all(entry_id: str | None, values: dict[str, Any]) -> None:
    session = make_session(values)
    disclosure.get_ci(session.registry)  # if it cannot be used, nothing is sent
    outbox = open_outbox(values, session.credential)
    names = (
        [entry_id] if entry_id else [entries.id for entries in outbox.list(every_run=values["all"])]
    )
    errors: list[SealpipeError] = []
    with closing(connect(session)):
        for name in names:
            try:
                _finish(session, outbox, name, values, is_named=entry_id is not None)
            except SealpipeError as error:
                errors.append(error)
    if not names:
        render.print_note("nothing to resume")
    errors.sort(
        key=lambda error: (
            EXIT_CODE_PRIORITY.index(error.exit_code)
            if error.exit_code in EXIT_CODE_PRIORITY
            else len(EXIT_CODE_PRIORITY)
        )
    )
    for later in errors[1:]:
        render.print_note(f"sealpipe: {later.message}")
    if errors:
        raise errors[0]


def _finish(
    session: Session, outbox: Outbox, name: str, values: dict[str, Any], *, is_named: bool
) -> None:

    entry = outbox.open(name)
    if isinstance(entry, str):
        if is_named:
            reason = (
                "is in use by another process"
                if entry == "busy"
                else "does not exist: it may be finished"
            )
            raise StateError(
                f"outbox entry {name} {reason}",
                remedy="list all entries: `sealpipe resume --list --all`",
            )
        return
    to = entry.meta.get("deliver") or {}
    sends_link = any(row[0] == "link" for row in entry.meta.get("recipients", ()))
    with keep_entry_on_error(entry):
        gate = disclosure.plan_disclosure(
            f"the link of outbox entry {name}",
            "resume it outside CI",
            printing=values["print"],
            # A collect link is not secret.
            elsewhere=bool(
                entry.meta["kind"] != "share"
                or to.get("link_file")
                or to.get("seal_link")
                or sends_link
            ),
            addresses=[entry.meta["base_url"], entry.meta["link_base_url"]],
        )
    share = finish_entry(session, entry, resend=values["resend"])
    created_folder = find_state_folder(values, "created")
    deliver.finish(
        session,
        share,
        to,
        gate,
        created=created_folder,
        as_json=values["output"] == "json",
        resend=values["resend"],
    )


def _print_entries(values: dict[str, Any]) -> None:
    """List the outbox; change nothing.

    Of an entry that cannot be opened, show the unencrypted members.
    """

    outbox = open_outbox(values, _load_credential(values))
    rows: list[dict[str, Any]] = []
    for listed in outbox.list(every_run=values["all"]):
        row: dict[str, Any] = {
            "id": listed.id,
            "key_id": listed.key_id,
            "created_at": format_time(listed.created_at),
        }
        row |= {
            "run": listed.run,
            "kind": None,
            "short_code": None,
            "left": None,
            **_read_sealed_members(outbox, listed.id),
        }
        rows.append(row | ({"damage": listed.damage} if listed.damage else {}))
    if not outbox.folder.is_dir():
        where = render.escape(str(outbox.folder.parent))
        render.print_note(
            f"note: {where} has no outbox; --state-dir or SEALPIPE_STATE_DIR names another "
            "directory"
        )
    if values["output"] == "json":
        render.print_json({"entries": rows})
        return
    render.print_lines(map(_format_line, rows))


def _format_line(row: dict[str, Any]) -> str:
    if "damage" in row:
        return f"{row['id']}\tunreadable: {row['damage']}"
    parts = [row["id"], row["created_at"], f"key {row['key_id']}"]
    parts += [f"run {row['run']}"] if row["run"] else []
    parts += [" ".join(filter(None, (row["kind"], row["short_code"])))] if row["kind"] else []
    steps = [f"{each['what']} to {each['to']} ({each['state']})" for each in row["left"] or ()]
    parts += [f"left: {', '.join(steps)}"] if steps else []
    return "\t".join(render.escape(part) for part in parts)


def _load_credential(values: dict[str, Any]) -> Credential | None:
    try:
        key = run_config().read_api_key(values["api_key_file"])
        return open_credential(key, values["service_tag"]) if key else None
    except SealpipeError:
        return None  # the list works without a credential


def _read_sealed_members(outbox: Outbox, entry_id: str) -> dict[str, Any]:
    try:
        entry = outbox.open(entry_id)
    except SealpipeError:
        return {}
    if isinstance(entry, str):
        return {"left": [{"what": "entry", "to": "the service", "state": entry}]}
    try:
        code = (entry.response or {}).get("short_code")
        return {"kind": entry.meta["kind"], "short_code": code, "left": _list_unfinished(entry)}
    finally:
        entry.close()


def _list_unfinished(entry: Entry) -> list[dict[str, str]]:
    """Return the unfinished steps.

    The share or request itself, its messages, its files or its line on stdout.
    """
    recipients = entry.meta.get("recipients", ())
    states = [entry.deliveries.get(number, "pending") for number in range(len(recipients))]
    steps = (
        []
        if entry.response
        else [{"what": entry.meta["kind"], "to": "the service", "state": "not answered"}]
    )
    if not (entry.is_stored or entry.response):
        steps += [
            {"what": "fields", "to": recipient, "state": "not stored"}
            for recipient in entry.meta.get("also_to", ())
        ]
    steps += [
        {"what": step, "to": to, "state": state}
        for (step, _, _, to), state in zip(recipients, states, strict=True)
        if state != "sent"
    ]
    to = entry.meta.get("deliver") or {}
    if (
        not to.get("link_file")
        and not to.get("seal_link")
        and all(row[0] != "link" for row in recipients)
    ):
        to = {**to, "stdout": "stdout"}
    files = {
        "link_file": "link",
        "seal_link": "sealed link",
        "receipt": "receipt",
        "stdout": "link",
    }
    return steps + [
        {"what": step, "to": to[name], "state": "pending"}
        for name, step in files.items()
        if to.get(name)
    ]
