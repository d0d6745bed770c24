"""`sealpipe requests show | submissions | purge`."""

from __future__ import annotations

from typing import Any

from sealpipe.api.requests import Submission
from sealpipe.cli import render
from sealpipe.cli.code_lists import resolve_request_code
from sealpipe.cli.expire import note_skipped, report_ended
from sealpipe.cli.known_names import UNKNOWN
from sealpipe.cli.local import find_state_folder
from sealpipe.cli.opening import open_client
from sealpipe.cli.requests_list import COLUMNS, KnownRequests
from sealpipe.lookup import confirm_code
from sealpipe.parsing import format_optional_time
from sealpipe.wire.encoding import names


def show(code: str, **values: Any) -> None:
    """Run `sealpipe requests show`."""
    with open_client(values) as client:
        known = KnownRequests(client, values)
        row = client.get_request(resolve_request_code(client, code))
    if values["output"] == "json":
        render.print_json(known.describe(row))
    else:
        render.print_table(COLUMNS, [known.list_cells(row)])


def submissions(code: str, **values: Any) -> None:
    """Run `sealpipe requests submissions`."""
    with open_client(values) as client:
        code = resolve_request_code(client, code)
        page = client.list_submissions(code)
    if values["output"] == "json":
        rows = [_describe_submission(row) for row in page.items]
        render.print_json(
            {"short_code": code, "submissions": rows, "count": page.count, "skipped": page.skipped}
        )
    else:
        render.print_lines(map(_format_submission, page.items))
    note_skipped(page.skipped)


def purge(code: str, confirm: str | None, **values: Any) -> None:
    """Run `sealpipe requests purge`."""
    code_to_purge = confirm_code(code, confirm or "")
    confirmed = code_to_purge if names(confirm or "", code_to_purge) else confirm or ""
    with open_client(values) as client:
        ended = client.purge_request(
            code_to_purge, confirm=confirmed, keep=find_state_folder(values, "requests")
        )
    row = report_ended(ended)
    if values["output"] == "json":
        render.print_json(row)


def _describe_submission(row: Submission) -> dict[str, Any]:
    created = format_optional_time(row.created_at)
    members = {
        "short_code": row.short_code,
        "created_at": created,
        "bytes": _measure_box(row),
        "data": row.data,
    }
    return {**row.extra, **members, "encryption_type": row.encryption_type}


def _format_submission(row: Submission) -> str:
    created = format_optional_time(row.created_at) or UNKNOWN
    return "\t".join(
        (render.escape(row.short_code or UNKNOWN), created, f"{_measure_box(row)} bytes")
    )


def _measure_box(row: Submission) -> int:
    """Return the size of the sealed box in bytes, without decoding it: the data may be invalid."""
    data = row.data or ""
    return len(data) * 3 // 4 - data[-2:].count("=")
