"""What a kill leaves of a batch, told as in `cli/outside.py`: its database is what is on disk."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cli.batch.world import BatchWorld
from cli.outside import State, counted, in_order, tell_requests, tell_service
from sealpipe.batch.database import statements as sql
from sealpipe.batch.database.records import Row, make_batch_row

SMALL = 1000
"""Numbers below are told: counts, and no times."""


@dataclass(frozen=True)
class Killed:
    """A kill of a batch, as `assert_reached` takes it."""

    state: State


def look(world: BatchWorld) -> Killed:
    """What is there after a machine of this world was killed.

    Reads past what that machine held in memory.
    """
    lines = tell_requests(world.network.log)
    lines += tell_service(world.service.database, "default")
    lines += [f"disk {line}" for line in _in_the_database(world)]
    lines += [
        f"delivered {line}"
        for line in in_order(f"{message.what} to {to}" for to, message in world.loft.messages)
    ]
    lines += [
        f"delivered {line}" for line in counted(f"values to {place}" for place in world.loft.puts)
    ]
    return Killed(tuple(lines))


def _in_the_database(world: BatchWorld) -> Iterator[str]:
    store = world.store
    for batch in store.list_batches():
        yield f"the batch {batch.name}: {_members(batch.content)}"
        yield from (f"the batch, {line}" for line in _effects(world, make_batch_row(batch)))
        for row in sorted(store.list_rows(batch, contents=True), key=lambda row: row.key or ""):
            content: Mapping[str, Any] = row.content or {}
            how = "not due" if row.due_at is None else "due"
            gone = ", gone from the file" if content["gone"] else ""
            known = _members(content["progress"])
            yield f"row {row.key}: {row.state} {row.generation}, {how}{gone} ({known})"
            told = in_order(str(event.content["what"]) for event in store.read_history(row))
            yield f"row {row.key}, history: {', then '.join(told) or 'nothing'}"
            yield from (f"row {row.key}, {line}" for line in _effects(world, row))


def _effects(world: BatchWorld, row: Row) -> list[str]:
    opened = world.store._keyring.get(row.batch)
    found = world.store._database.read(sql.LIST_EFFECTS, batch=row.batch, row=row.id)
    effects = [opened.load_effect(values) for values in found]
    named = ((re.sub(r"[0-9a-f]{64}", "<id>", each.name), each) for each in effects)
    return counted(
        f"effect {name}: {each.state} ({_members(each.content)})" for name, each in named
    )


def _members(members: Mapping[str, Any]) -> str:
    """The names of members that say something, with small numbers, and what an event is of."""
    told = (
        (name, value)
        for name, value in sorted(members.items())
        if value not in (None, "", False, [], {})
    )
    return " ".join(f"{name}{_value(name, value)}" for name, value in told)


def _value(name: str, value: Any) -> str:
    if name == "event":
        return f"={' '.join(value)}"
    return f"={value}" if isinstance(value, int) and value is not True and value < SMALL else ""
