"""`sealpipe shares list | show | log`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sealpipe.api.account import Access, AccessLog, ShareInfo
from sealpipe.api.pages import Page, Pagination
from sealpipe.cli import deliver, render
from sealpipe.cli.code_lists import fetch_page, print_page, resolve_share_code
from sealpipe.cli.known_names import KnownNames, find_state
from sealpipe.cli.opening import open_client
from sealpipe.client import Client
from sealpipe.lookup import walk_share_log
from sealpipe.parsing import format_optional_time


def list_(**values: Any) -> None:
    """Run `sealpipe shares list`."""
    with open_client(values) as client:
        found = (
            _list_active(client, values)
            if values["status"] == "active"
            else _list_expired(client, values)
        )
        names = KnownNames(values, "share", client.session.base_url)

    def state(row: ShareInfo) -> str:
        return "expired" if values["status"] == "expired" else find_state(row.expires_at)

    print_page(
        "shares",
        found,
        values,
        members=lambda row: _to_members(row, names, state(row)),
        columns=_COLUMNS,
        cells=lambda row: _list_cells(row, names, state(row)),
    )


def _list_active(client: Client, values: Mapping[str, Any]) -> Page[ShareInfo]:
    return fetch_page(
        values,
        lambda page, limit: client.list_shares(page=page, limit=limit),
        lambda limit: client.iter_shares(limit=limit),
    )


def _list_expired(client: Client, values: Mapping[str, Any]) -> Page[ShareInfo]:
    """Return the page of expired shares; an empty one, and a note, if the service has no such list.

    The specification does not define `status`: a service may ignore it, and list the active shares.
    """
    found = fetch_page(
        values,
        lambda page, limit: client.list_shares(page=page, limit=limit, status="expired"),
        lambda limit: client.iter_shares(limit=limit, status="expired"),
    )
    # After it, for what has ended before is not in it. One page is enough: it would be in both.
    active = _list_active(client, {**values, "all": False})
    if {row.short_code for row in found.items}.isdisjoint(row.short_code for row in active.items):
        return found
    render.print_note("this service does not list expired shares")
    return Page((), Pagination(total=0))


def show(code: str, **values: Any) -> None:
    """Run `sealpipe shares show`."""
    with open_client(values) as client:
        row = client.get_share(resolve_share_code(client, code))
        names = KnownNames(values, "share", client.session.base_url)
    # The service does not say whether its views are used up.
    is_expired = find_state(row.expires_at) == "expired"
    if values["output"] == "json":
        render.print_json(_to_members(row, names, "expired" if is_expired else None))
    else:
        render.print_table(
            _COLUMNS, [_list_cells(row, names, "expired" if is_expired else "not expired")]
        )


def log(code: str, **values: Any) -> None:
    """Run `sealpipe shares log`."""
    entries: list[Access] = []
    with open_client(values) as client:
        code = resolve_share_code(client, code)
        pages = walk_share_log(client.session, code, values["since"], values["until"])
        while not pages.is_done and (values["limit"] is None or len(entries) < values["limit"]):
            entries += pages.fetch_next()
        entries = entries[: values["limit"]]
    if pages.first is None:
        render.print_note("this service has no access log")
    if values["output"] == "json":
        render.print_json(_describe_log(code, pages.first, entries))
    else:
        render.print_lines(map(_format_access, entries))


def _to_members(row: ShareInfo, names: KnownNames, state: str | None) -> dict[str, Any]:
    expires_at = format_optional_time(row.expires_at)
    unknown = {} if row.expiry_known else {"expiry_known": False}
    members = {"short_code": row.short_code, "expires_at": expires_at, **unknown}
    return {**row.extra, **members, **names.describe(row.short_code, state)}


_COLUMNS = ("CODE", "EXPIRES", "STATE", "NAME", "TITLE")


def _list_cells(row: ShareInfo, names: KnownNames, state: str) -> list[str]:
    expires_at = deliver.describe_expiry(row.expires_at, known=row.expiry_known).removeprefix(
        "expires "
    )
    return [render.escape(row.short_code), expires_at, *names.list_cells(row.short_code, state)]


def _describe_log(code: str, first: AccessLog | None, entries: list[Access]) -> dict[str, Any]:
    if first is None:
        return {"offered": False, "short_code": code, "entries": []}
    return {
        "offered": True,
        "short_code": first.short_code,
        "entries": [_describe_access(entry) for entry in entries],
        "retention_days": first.retention_days,
        "effective_from": format_optional_time(first.effective_from),
        "effective_to": format_optional_time(first.effective_to),
    }


def _describe_access(entry: Access) -> dict[str, Any]:
    names = ("accessed_ip", "platform", "user_agent", "failed_passcode", "signed_in")
    members = {name: getattr(entry, name) for name in names}
    return {**entry.extra, "accessed_at": format_optional_time(entry.accessed_at), **members}


def _format_access(entry: Access) -> str:
    event = "failed passcode" if entry.failed_passcode else "opened"
    cells = (
        format_optional_time(entry.accessed_at),
        event,
        entry.accessed_ip,
        entry.platform,
        entry.user_agent,
    )
    return "\t".join("-" if cell is None else render.escape(cell) for cell in cells)
