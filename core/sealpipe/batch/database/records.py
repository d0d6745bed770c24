"""What a batch's store returns: batches, rows, effects and events, as they were read.

Who was faster.

Every time is an integer: microseconds since 1970 UTC, by the database's clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple, cast

from sealpipe.batch.database.data_keys import DataKeys
from sealpipe.batch.database.interface import Values, check_types
from sealpipe.batch.database.queue import Job
from sealpipe.batch.database.sealing import (
    Cell,
    IdMaker,
    KeyWrapper,
    Members,
    make_damage_error,
)
from sealpipe.errors import SealpipeError

SECOND: Final = 1_000_000
"""A second in microseconds."""
BATCH, ROW, EFFECT, EVENT = "batch", "row", "effect", "event"
"""The columns of blobs."""

EffectState = Literal["intent", "sending", "done", "failed"]
_EFFECT_STATES: Final = ("intent", "sending", "done", "failed")
_ROW_COLUMNS = 7
_MAX_EVENTS: Final = 256
"""Events of one version of a row, at most: their numbers are made from it."""


class ConflictError(SealpipeError):
    """Another worker has changed this row, or begun this effect: nothing was written.

    Look at the row again.

    It is no UsageError, so that no verb takes it for a failure of its own.
    """

    default_remedy = "run the command again: it continues from what the other one did"


def make_conflict_error(what: str = "row") -> ConflictError:
    """Make the error for a row or an effect that another worker has changed."""
    return ConflictError(
        f"another worker has changed this {what} of the batch meanwhile: nothing was written"
    )


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch that this credential opens.

    `key_id` is that of the credential that it is sealed to.
    """

    id: str
    name: str
    service: str
    key_id: str
    created_at: int
    version: int
    content: Members = field(repr=False)


class NewRow(NamedTuple):
    """A row to add.

    Its key in the file, its first state, when it is due (None: not by itself), and what it holds.
    """

    key: str
    state: str
    due_at: int | None
    content: Members


@dataclass(slots=True)
class Hold:
    """What a process knows of a row that it works on.

    Its job, and the version and generation that it has read or written last.
    """

    job: Job
    version: int
    generation: int


@dataclass(frozen=True, slots=True)
class Row:
    """A row as it was read. State, generation and version are bound into its seal.

    `since` is when the state last changed. `generation` is 1, and more after it was reissued.
    Without contents, `key` and `content` are None, and nothing is checked. `hold` is that of the
    process that works on it, and the same for all versions that it writes.
    """

    batch: str
    id: str
    state: str
    due_at: int | None
    since: int
    version: int
    generation: int
    key: str | None = field(default=None, repr=False)
    content: Members | None = field(default=None, repr=False)
    hold: Hold | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Effect:
    """Something that a row does to the world, once.

    `name` is as in `1/message/0`; `at` when the state changed.
    """

    batch: str
    row: str
    id: str
    state: EffectState
    at: int
    version: int
    name: str = field(repr=False)
    content: Members = field(repr=False)


class Event(NamedTuple):
    """A line of a row's history."""

    at: int
    content: Members


class OpenBatch(NamedTuple):
    """What seals a batch, inside its transactions, and makes its ids.

    Another batch of the same name has another `created_at`.
    """

    sealer: DataKeys
    ids: IdMaker
    created_at: int
    wrapper: KeyWrapper

    def load_row(self, values: Values) -> Row:
        """Make a row of what the database holds, with or without its blob.

        Raises StateError if it was changed.
        """
        columns: Any = check_types(values[:_ROW_COLUMNS], "tttniii")
        row = Row(*columns)
        if len(values) == _ROW_COLUMNS:
            return row
        (blob,) = check_types(values[_ROW_COLUMNS:], "b")
        opened = self.sealer.open(
            make_row_cell(row.id, row.state, row.generation, row.version), blob
        )
        key, content = opened.get("key"), opened.get("content")
        if not isinstance(key, str) or not isinstance(content, dict):
            raise make_damage_error()
        return replace(row, key=key, content=content)

    def load_effect(self, values: Values) -> Effect:
        """Make an effect of what the database holds. Raises StateError if it was changed."""
        batch, row, effect_id, state, at, version, blob = check_types(values, "ttttiib")
        opened = self.sealer.open(make_effect_cell(row, effect_id, state, version), blob)
        name, content = opened.get("name"), opened.get("content")
        if (
            state not in _EFFECT_STATES
            or not isinstance(name, str)
            or not isinstance(content, dict)
        ):
            raise make_damage_error()
        return Effect(batch, row, effect_id, cast(EffectState, state), at, version, name, content)

    def load_event(self, row: str, values: Values) -> Event:
        """Make an event of what the database holds. Raises StateError if it was changed."""
        number, at, blob = check_types(values, "iib")
        return Event(at, self.sealer.open(make_event_cell(row, number), blob))

    def seal_row(self, row: Row) -> bytes:
        """Return the blob of a row with its content."""
        cell = make_row_cell(row.id, row.state, row.generation, row.version)
        return self.sealer.seal(cell, make_row_content(row.key or "", row.content or {}))

    def seal_events(self, row: Row, events: Sequence[Members], now: int) -> list[dict[str, object]]:
        """Return what a row's new version adds to its history, as parameters."""
        if len(events) > _MAX_EVENTS:
            raise ValueError("too many events at once")
        numbered = enumerate(events, start=row.version * _MAX_EVENTS)
        return [
            {
                "batch": row.batch,
                "row": row.id,
                "number": number,
                "now": now,
                "blob": self.sealer.seal(make_event_cell(row.id, number), event),
            }
            for number, event in numbered
        ]


def make_batch_row(batch: Batch) -> Row:
    """Return what stands for a batch itself where an effect has a row."""
    return Row(batch.id, "", "", None, 0, 0, 1)


def make_row_cell(row: str, state: str, generation: int, version: int) -> Cell:
    """Return the place of a row's blob."""
    return Cell(row, ROW, version, state, generation)


def make_effect_cell(row: str, effect: str, state: str, version: int) -> Cell:
    """Return the place of an effect's blob."""
    return Cell(row, f"{EFFECT} {effect}", version, state)


def make_event_cell(row: str, number: int) -> Cell:
    """Return the place of an event's blob."""
    return Cell(row, EVENT, number)


def make_row_content(key: str, content: Members) -> dict[str, Any]:
    """Return what a row's blob holds."""
    return {"key": key, "content": content}


def make_effect_content(name: str, content: Members) -> dict[str, Any]:
    """Return what an effect's blob holds."""
    return {"name": name, "content": content}
