"""`sealpipe requests list | show | submissions | expire | purge`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sealpipe.cli import codes, context, pages, render
from sealpipe.cli.options import CodeCommand, Command, Family, options
from sealpipe.times import format_time

if TYPE_CHECKING:
    from sealpipe.api.models import Page, RequestInfo, Submission
    from sealpipe.client import Client
    from sealpipe.flows.request.expire import EndedRequest

UNKNOWN = "-"


@click.group(cls=Family)
def requests() -> None:
    """List, show, expire and purge requests, and see what was submitted. Only ciphertext: `collect` opens it."""


@requests.command("list", cls=Command)
@options("requests", common=context.COMMON)
def list_(status: str, sealed_to: str | None, **values: Any) -> None:
    """The requests that can still be answered, newest first.

    The last column tells whose key they are sealed to: this credential's, the previous one's, or another. With
    --sealed-to previous, all that still need the key before this one: while there are any, it ends with 15.
    """
    with _client(values) as client:
        known = _known_keys(client)
        asked = {**values, "all": values["all"] or sealed_to is not None}
        found = _active(client, asked, sealed_to) if status == "active" else _ended(client, asked, sealed_to)
    pages.show("requests", found, values, members=lambda row: _members(row, known), line=lambda row: _line(row, known))
    if sealed_to is not None:
        from sealpipe.cli.sealed_to import check_free

        check_free(sealed_to, list(found.items))


@requests.command(cls=CodeCommand)
@click.argument("code")
@options("", common=context.COMMON)
def show(code: str, **values: Any) -> None:
    """What the service tells of a request. Changes nothing."""
    with _client(values) as client:
        known = _known_keys(client)
        row = client.get_request(codes.request(client, code))
    if values["output"] == "json":
        render.json_result(_members(row, known))
    else:
        render.lines([_line(row, known)])


@requests.command(cls=CodeCommand)
@click.argument("code")
@options("", common=context.COMMON)
def submissions(code: str, **values: Any) -> None:
    """What was submitted to a request: code, time and size of each. Nothing is opened.

    With --output json, the ciphertext too.
    """
    with _client(values) as client:
        code = codes.request(client, code)
        found = client.list_submissions(code)
    if values["output"] == "json":
        rows = [_submitted(row) for row in found.items]
        render.json_result({"short_code": code, "submissions": rows, "count": found.count, "skipped": found.skipped})
    else:
        render.lines(map(_submitted_line, found.items))
    _note_skipped(found.skipped)


@requests.command(cls=CodeCommand)
@click.argument("code")
@options("", common=context.COMMON)
def expire(code: str, **values: Any) -> None:
    """End a request now; what was submitted stays at the service. Safe to run again, at any time.

    The ciphertext of every submission is kept in the state folder, too.
    """
    with _client(values) as client:
        keep = _folder(values)
        ended = client.expire_request(codes.request(client, code, keep), keep=keep)
    _tell(ended, as_json=values["output"] == "json")


@requests.command(cls=CodeCommand)
@click.argument("code")
@options("purge", common=())
@options("", common=context.COMMON)
def purge(code: str, confirm: str | None, **values: Any) -> None:
    """Destroy a request with everything submitted to it, for good. Needs --confirm CODE.

    The ciphertext is kept in the state folder; the service has nothing of it any more.
    """
    from sealpipe.flows.short_codes import confirmed_code
    from sealpipe.wire.code import names

    meant = confirmed_code(code, confirm or "")
    confirmed = meant if names(confirm or "", meant) else confirm or ""
    with _client(values) as client:
        ended = client.purge_request(meant, confirm=confirmed, keep=_folder(values))
    _tell(ended, as_json=values["output"] == "json")


def _client(values: dict[str, Any]) -> Client:
    from sealpipe.client import Client

    return Client.of_session(context.session(values))


def _folder(values: Mapping[str, Any]) -> Path:
    from sealpipe.state.directory import state_folder

    return state_folder(os.environ, values["state_dir"]) / "requests"


def _active(client: Client, asked: dict[str, Any], sealed_to: str | None) -> Page[RequestInfo]:
    return pages.fetch(
        asked,
        lambda page, limit: client.list_requests(page=page, limit=limit),
        lambda limit: _only(client, sealed_to, client.iter_requests(limit=limit)),
    )


def _ended(client: Client, asked: dict[str, Any], sealed_to: str | None) -> Page[RequestInfo]:
    from sealpipe.cli.ended import Ended

    ended = Ended(client)
    found = pages.fetch(
        asked,
        lambda page, limit: ended.page(client.list_requests(page=page, limit=limit, status="expired")),
        lambda limit: _only(client, sealed_to, ended.rows(client.iter_requests(limit=limit, status="expired"))),
    )
    ended.tell(must=sealed_to is not None)
    return found


def _only(client: Client, which: str | None, rows: Iterable[RequestInfo]) -> Iterable[RequestInfo]:
    if which is None:
        return rows
    from sealpipe.cli.sealed_to import sealed_to

    return sealed_to(client, which, rows)


def _known_keys(client: Client) -> dict[str, str]:
    """The public keys that this environment could open with, and whose they are."""
    from sealpipe.cli.sealed_to import known_keys

    return {each.public_key: each.name for each in reversed(known_keys(client))}


def _key(row: RequestInfo, known: Mapping[str, str]) -> str | None:
    """Whose key a request is sealed to; None where that cannot be told."""
    return known.get(row.public_key, "other") if row.public_key and known else None


def _members(row: RequestInfo, known: Mapping[str, str]) -> dict[str, Any]:
    ends = None if row.expires_at is None else format_time(row.expires_at)
    told = {"short_code": row.short_code, "expires_at": ends, "public_key": row.public_key, "key": _key(row, known)}
    return {**row.extra, **told}


def _line(row: RequestInfo, known: Mapping[str, str]) -> str:
    ends = "expired" if row.expires_at is None else format_time(row.expires_at)
    return "\t".join((render.printable(row.short_code), ends, _key(row, known) or UNKNOWN))


def _submitted(row: Submission) -> dict[str, Any]:
    created = None if row.created_at is None else format_time(row.created_at)
    told = {"short_code": row.short_code, "created_at": created, "bytes": _size(row), "data": row.data}
    return {**row.extra, **told, "encryption_type": row.encryption_type}


def _submitted_line(row: Submission) -> str:
    created = UNKNOWN if row.created_at is None else format_time(row.created_at)
    return "\t".join((render.printable(row.short_code or UNKNOWN), created, f"{_size(row)} bytes"))


def _size(row: Submission) -> int:
    """Bytes of the sealed box, without decoding it: it may be anything."""
    data = row.data or ""
    return len(data) * 3 // 4 - data[-2:].count("=")


def _tell(ended: EndedRequest, *, as_json: bool) -> None:
    code, count = render.printable(ended.short_code), len(ended.submissions)
    ends = None if ended.expires_at is None else format_time(ended.expires_at)
    said = {
        "expired": f"expired {code}",
        "already-expired": f"{code} had expired before",
        "expiring": f"{code} ends by itself at {ends}, too soon to be expired before; run this again after that",
        "deleted": f"purged {code}",
    }
    render.note(said[ended.outcome])
    render.note(f"kept {count} submission(s), {ended.late} of them late, in {ended.kept_in}")
    _note_skipped(ended.skipped)
    if as_json:
        render.json_result(
            {
                "short_code": ended.short_code,
                "outcome": ended.outcome,
                "expires_at": ends,
                "kept": count,
                "late": ended.late,
                "skipped": ended.skipped,
                "kept_in": str(ended.kept_in),
            }
        )


def _note_skipped(skipped: int | None) -> None:
    if skipped:
        render.note(f"{skipped} submission(s) were not end-to-end encrypted: the service does not hand them out")
