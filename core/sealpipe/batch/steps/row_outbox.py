"""The second outbox.

What a row has sent, and a request's ledger, as effects in the batch's database.

Shares, requests, deliveries and collecting use it as they use files (`sealpipe.state.files`). Every
name begins with the row's generation: `1/create`, `1/message/0`, `1/remind/2/0`,
`1/store/MARKER/TARGET`, `1/expire`, `1/submission/IDENTITY`. Another worker that was faster shows
as a ConflictError, before anything is sent.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Literal

from sealpipe.batch.database.records import SECOND, Batch, Effect, Row, make_conflict_error
from sealpipe.batch.database.sealing import Members
from sealpipe.batch.database.store import BatchStore
from sealpipe.delivery.send import DeliveryState
from sealpipe.errors import StateError
from sealpipe.state.entry import (
    MAX_RESEND_AGE,
    SECRET_MEMBERS,
    Entry,
    EntryCommands,
    get_marker,
    wrap_secrets,
)
from sealpipe.state.ledger import Ledger, LedgerOpener, identify_submission, open_ledger

_NoteState = Literal["sending", "done", "failed"]
_DELIVERY_STATES: Final[Mapping[str, _NoteState]] = {
    "sending": "sending",
    "sent": "done",
    "failed": "failed",
}
_STATES_OF_DELIVERIES: Final[Mapping[str, DeliveryState]] = {
    "sending": "sending",
    "done": "sent",
    "failed": "failed",
}
_WRITE_STATES: Final[Mapping[str, _NoteState]] = {
    "storing": "sending",
    "stored": "done",
    "not stored": "failed",
}


class _RowEffects:
    """The effects of one generation of a row, noted by name."""

    def __init__(self, store: BatchStore, row: Row) -> None:
        self._store = store
        self._row = row
        self._known: dict[str, Effect] = {}

    def load(self) -> dict[str, Effect]:
        """Read every effect of this generation: by name, without the generation."""
        prefix = self._make_name("")
        effects = [
            each for each in self._store.effects.list(self._row) if each.name.startswith(prefix)
        ]
        self._known = {each.name.removeprefix(prefix): each for each in effects}
        return dict(self._known)

    def note(
        self, name: str, state: _NoteState, content: Members, *, may_wait: bool = False
    ) -> None:
        """Record the next state.

        Raises ConflictError if another worker was faster: then nothing may be done.

        With `may_wait`, the outcome of what may be repeated is recorded with the row's next write.
        """
        known, effects = self._known.get(name), self._store.effects
        full_name = self._make_name(name)
        if known is None and state == "sending":
            noted = effects.begin(self._row, full_name, content)
        elif known is None:
            noted = effects.record(self._row, full_name, content)
        elif state == "sending":
            noted = effects.repeat(self._row, known, content)
        else:
            noted = effects.finish(known, state, content, may_wait=may_wait)
        if noted is None:
            raise make_conflict_error("effect")
        self._known[name] = noted

    def amend(self, name: str, content: Members, *, may_wait: bool = False) -> None:
        """Replace the content of an effect that was noted."""
        self._known[name] = self._store.effects.amend(self._known[name], content, may_wait=may_wait)

    def _make_name(self, name: str) -> str:
        return f"{self._row.generation}/{name}"


class RowOutbox:
    """The outbox of one generation of a row that this worker holds.

    For one share or request (`EntryStore`).
    """

    def __init__(
        self, store: BatchStore, batch: Batch, row: Row, options: Members | None = None
    ) -> None:
        """`options` are recorded with what is added: those of the file may have changed later."""
        self._store = store
        self._batch = batch
        self._row = row
        self._options = options

    def prepare(self) -> None:
        """Do nothing: the database is open."""

    def add(self, meta: Mapping[str, Any], body: bytes | bytearray) -> Entry:
        """Record a share or a request before it is sent.

        Raises ConflictError if one is recorded for this generation, StateError if the database
        cannot be written.
        """
        now = self._store.now()
        content = {
            "key_id": self._store.credential.key_id,
            "created_at": now,
            "meta": dict(meta),
            "body": body.decode(),
            "options": self._options,
        }
        effects = _RowEffects(self._store, self._row)
        effects.note("create", "sending", content)
        return self._make_entry(effects, content, meta, body)

    def open(self) -> Entry | None:
        """Return the entry of this generation; None if there is none, or it has ended.

        Raises StateError if it was on its way when the API key was rotated: it is never sent under
        another key.
        """
        effects = _RowEffects(self._store, self._row)
        known = effects.load()
        create = known.get("create")
        if create is None or create.state == "failed" or create.content.get("ended"):
            return None
        content = dict(create.content)
        if content["key_id"] != self._store.credential.key_id and create.state != "done":
            raise StateError(
                f"the row {self._row.key} was being sent with the API key "
                f"{content['key_id']}, which was rotated "
                "since: whether it was created is not known, and it is not sent again "
                "under another key",
                remedy="check `sealpipe shares list` and `sealpipe requests list`, then "
                f"`{list_commands(self._batch, self._row).discard}`",
            )
        entry = self._make_entry(
            effects, content, wrap_secrets(content["meta"]), content.get("body", "").encode()
        )
        entry.response, entry.is_stored = content.get("response"), content.get("stored", False)
        entry.key = content.get("key", entry.key)
        writes: dict[str, str] = {state: name for name, state in _WRITE_STATES.items()}
        targets = f"store/{get_marker(entry.meta)}/"
        for name, effect in known.items():
            if name.startswith("message/"):
                number = int(name.removeprefix("message/"))
                entry.deliveries[number] = _STATES_OF_DELIVERIES[effect.state]
            elif name.startswith(targets):
                entry.write_states[name.removeprefix(targets)] = writes[effect.state]
        return entry

    def _make_entry(
        self,
        effects: _RowEffects,
        content: Mapping[str, Any],
        meta: Mapping[str, Any],
        body: bytes | bytearray,
    ) -> RowEntry:
        created_at = datetime.fromtimestamp(content["created_at"] / SECOND, UTC)
        return RowEntry(
            self._row.id,
            created_at,
            meta,
            body,
            key=meta["idempotency_key"],
            effects=effects,
            content=dict(content),
            store=self._store,
            batch=self._batch,
            row=self._row,
        )


@dataclass(slots=True, eq=False, kw_only=True)
class RowEntry(Entry):
    """An entry that is an effect of a row. The row's job keeps others away."""

    effects: _RowEffects = field(repr=False)
    content: dict[str, Any] = field(repr=False)
    store: BatchStore = field(repr=False)
    batch: Batch = field(repr=False)
    row: Row = field(repr=False)

    @property
    def label(self) -> str:
        return f"the row {self.row.key}"

    def exists(self) -> bool:
        return not self.content.get("ended")

    @property
    def commands(self) -> EntryCommands:
        return list_commands(self.batch, self.row)

    def is_too_old(self, now: datetime) -> bool:
        """Return whether the service may have forgotten the idempotency key (database's clock)."""
        del now
        return (
            not 0
            <= self.store.now() - self.content["created_at"]
            <= MAX_RESEND_AGE.total_seconds() * SECOND
        )

    def end(self) -> None:
        """End the entry: only what is no secret stays.

        One that created nothing can be begun anew.
        """
        meta = {name: value for name, value in self.meta.items() if name not in SECRET_MEMBERS}
        self.content.pop("body", None)
        self.content.pop("options", None)  # the row has them
        self.content |= {"meta": meta, "ended": True}
        if self.response is None:
            self.effects.note("create", "failed", self.content)
        else:
            self.effects.amend("create", self.content, may_wait=True)

    def close(self) -> None:
        """Do nothing: whoever took the row gives it back."""

    def _write(self, event: Mapping[str, Any]) -> None:
        match event:
            case {"answered": response}:
                self.content.pop("body", None)  # it is never sent again
                self.content["response"] = response
                # Until it is on disk, the same bytes would be sent again under their key.
                self.effects.note("create", "done", self.content, may_wait=True)
            case {"delivery": [number, state]}:
                self.effects.note(f"message/{number}", _DELIVERY_STATES[state], {})
            case {"place": [place, state]}:
                self.effects.note(
                    f"store/{get_marker(self.meta)}/{place}", _WRITE_STATES[state], {}
                )
            case _:  # a new key, or that all targets are written
                self.content |= event
                self.effects.amend("create", self.content)


class ReminderEntry:
    """A reminder of one generation of a row: its messages, as those of an entry are.

    `number` is in the names of their effects: `1/remind/2/0`.
    """

    def __init__(self, store: BatchStore, batch: Batch, row: Row, number: str) -> None:
        self.id = row.id
        self.commands = list_commands(batch, row)
        self._effects = _RowEffects(store, row)
        self._known = self._effects.load()
        self._prefix = f"remind/{number}"

    def read_state(self, number: int) -> DeliveryState:
        """Return the state of a message when the entry was opened."""
        known = self._known.get(f"{self._prefix}/{number}")
        return "pending" if known is None else _STATES_OF_DELIVERIES[known.state]

    def note_delivery(self, number: int, state: str) -> None:
        """Record the state of a message. Raises ConflictError if another worker has begun it."""
        self._effects.note(f"{self._prefix}/{number}", _DELIVERY_STATES[state], {})


class RowLedger(Ledger):
    """A request's ledger, as effects of its row: each holds the last event of its kind.

    `file` is the ledger that other commands of this machine use for the request: DELETEs are noted
    in both, and what either knows of one counts, because a second DELETE destroys.
    """

    def __init__(self, store: BatchStore, row: Row, file: Ledger | None = None) -> None:
        super().__init__()
        self._file = file
        self._effects = _RowEffects(store, row)
        for effect in self._effects.load().values():
            if "event" in effect.content:
                self._apply(effect.content["event"])
        if file is not None:
            self.pending = max(
                filter(None, (self.pending, file.pending)), key=lambda each: each.at, default=None
            )
            self.is_expired = self.is_expired or file.is_expired

    def close(self) -> None:
        """Unlock the file; whoever took the row gives it back."""
        if self._file is not None:
            self._file.close()

    def _write(self, lines: list[dict[str, Any]]) -> None:
        for event in lines:
            self._effects.note(*_name_event(event), {"event": event})
        if self._file is not None:
            self._file.note_deletes(lines)


def make_ledger_opener(store: BatchStore, row: Row) -> LedgerOpener:
    """Return what opens the ledger of the request of a row that this worker holds."""
    return partial(_open_ledger, store, row)


def _open_ledger(store: BatchStore, row: Row, base_url: str, short_code: str) -> Ledger | None:
    """Open a row's ledger, or return None if another command works on the request."""
    if store.ledger_folder is None:
        return RowLedger(store, row)
    file = open_ledger(store.ledger_folder, base_url, short_code)
    if file is None:
        return None
    try:
        return RowLedger(store, row, file)
    except BaseException:
        file.close()
        raise


def _name_event(event: Mapping[str, Any]) -> tuple[str, _NoteState]:
    """Return the effect of a ledger's event, and its state."""
    match event:
        case {"submission": submission}:
            return f"submission/{identify_submission(submission)}", "done"
        case {"sending": _}:
            return "expire", "sending"
        case {"settled": outcome}:
            return "expire", "done" if outcome == "expired" else "failed"
        case {"purging": purging}:
            return "purge", "sending" if purging else "done"
        case {"placing": {"marker": marker, "place": place, "state": state}}:
            return f"store/{marker}/{place}", _WRITE_STATES[state]
    raise ValueError


def list_commands(batch: Batch, row: Row) -> EntryCommands:
    """Return the commands for the entry of a row. None of them removes it alone: the row stays."""
    target = f"{batch.name} -- {shlex.quote(row.key or '')}"
    return EntryCommands(
        "sealpipe batch run",
        f"sealpipe batch remind {target}",
        f"sealpipe batch reissue {target}",
        keeps_link=False,
    )
