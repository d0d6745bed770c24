"""Seals the tables of a batch anew under another data key.

It keeps the keys of requests that only the old credential derives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from sealpipe.api.operation import Credential
from sealpipe.batch.database import statements as sql
from sealpipe.batch.database.interface import Transaction, Values, check_types
from sealpipe.batch.database.records import make_effect_cell, make_event_cell, make_row_cell
from sealpipe.batch.database.sealing import (
    Cell,
    DataKey,
    Members,
    Opener,
    derive_request_key,
)
from sealpipe.wire.encoding import encode_base64url

_PAGE: Final = 500

Convert = Callable[[Cell, Members], Members]
"""Makes of a blob's place and members those that are sealed anew."""


class Table(NamedTuple):
    """How to seal a table anew: its pages and its change.

    Where a row's blob stands, and what names the row.
    """

    page: str
    change: str
    locate: Callable[[Values], Cell]
    name: Callable[[Values], dict[str, Any]]


ROWS: Final = Table(
    sql.PAGE_ROWS,
    sql.RESEAL_ROW,
    lambda row: make_row_cell(row[0], row[1], row[2], row[3]),
    lambda row: {"row": row[0]},
)
OTHER_TABLES: Final = (
    Table(
        sql.PAGE_EFFECTS,
        sql.RESEAL_EFFECT,
        lambda row: make_effect_cell(row[0], row[1], row[2], row[3]),
        lambda row: {"row": row[0], "effect": row[1]},
    ),
    Table(
        sql.PAGE_HISTORY,
        sql.RESEAL_EVENT,
        lambda row: make_event_cell(row[0], row[1]),
        lambda row: {"row": row[0], "number": row[1]},
    ),
)


def keep_all(_: Cell, members: Members) -> Members:
    """Return a blob's members as they are."""
    return members


def seal_table_anew(
    transaction: Transaction,
    batch_id: str,
    table: Table,
    old: Opener,
    new: DataKey,
    convert: Convert = keep_all,
    *,
    only_changed: bool = False,
) -> None:
    """Seal a table of a batch under another data key; or only what `convert` changes of it."""
    last: dict[str, Any] = {"row": "", "effect": "", "number": -1}
    while True:
        page = transaction.run(table.page, batch=batch_id, limit=_PAGE, **last)
        changes = []
        for values in page:
            cell = table.locate(values)
            (sealed,) = check_types(values[-1:], "b")
            members: Members = old.open(cell, sealed)
            converted = convert(cell, members)
            if converted is not members or not only_changed:
                blob = new.seal(cell, converted)
                changes.append({"batch": batch_id, "blob": blob, **table.name(values)})
        if changes:
            transaction.run_many(table.change, changes)
        if len(page) < _PAGE:
            return
        last.update(table.name(page[-1]))


def add_seed(owner: Credential, batch: str, cell: Cell, members: Members) -> Members:
    """Return a row's members with the seed of its request's key, if `owner` derives it.

    Another credential cannot derive it, so what people submit could not be opened.
    """
    content = members.get("content")
    progress = content.get("progress") if isinstance(content, dict) else None
    if (
        not isinstance(content, dict)
        or not isinstance(progress, dict)
        or owner.custody_secret is None
    ):
        return members
    if not progress.get("public_key") or progress.get("seed"):
        return members
    pair = derive_request_key(owner, batch, str(members.get("key")), cell.generation)
    if encode_base64url(pair.public_key) != progress["public_key"]:
        return members
    kept = {**progress, "seed": encode_base64url(pair.seed)}
    return {**members, "content": {**content, "progress": kept}}
