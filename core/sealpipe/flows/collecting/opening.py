"""From sealed boxes to what was typed. Pure. Whatever a box holds, nothing of it is in an error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sealpipe.api.models import Submission
from sealpipe.errors import PayloadTooLargeError, WireError
from sealpipe.flows.collecting.keys import InHand
from sealpipe.flows.collecting.result import Identity, Received, Unreadable
from sealpipe.flows.storing.targets import plain
from sealpipe.secret import closed
from sealpipe.wire import fields, sealed_box

Seen = dict[Identity, Received | Unreadable]
"""What became of each submission, by its identity: what was opened once is not opened again."""


def open_all(items: Iterable[Submission], keys: Sequence[InHand], tag: str, seen: Seen) -> None:
    """Open what is new. A submission that is there twice is one."""
    for item in items:
        if item.identity not in seen:
            seen[item.identity] = opened(item, keys, tag)


def opened(item: Submission, keys: Sequence[InHand], tag: str) -> Received | Unreadable:
    """One submission, by the first key that opens it."""
    reason = "it has no content"
    for each in keys if item.data else ():
        try:
            payload = sealed_box.open(each.pair, item.data or "", tag=tag)
        except WireError as error:
            reason = f"it cannot be decrypted ({error.reason})"
            continue
        try:
            found = tuple(_closed(field) for field in fields.load(payload))
        except (WireError, PayloadTooLargeError) as error:
            reason = f"it is no array of fields ({getattr(error, 'reason', 'too-large')})"
            break
        return Received(item.short_code, item.created_at, found, plain(item.short_code, item.data or ""))
    return Unreadable(item.short_code, item.created_at, reason)


def _closed(field: fields.Field) -> fields.Field:
    """The same, its value closed: no traceback's locals show it."""
    return fields.Field(
        field.key,
        closed(field.value),
        field.type,
        language=field.language,
        filename=field.filename,
        extra=field.extra,
        order=field.order,
    )
