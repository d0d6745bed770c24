"""What this server made.

An outbox entry until it is finished, and a creation as soon as the service has responded.

The id of a call is that of its entry, and part of the name (`mcp-ID`) of what it makes. So the same
call finds in either place what it left. Notes of ours are in both, and hold no secret; a share's
link is in the entry only, which is sealed.

    entry     before the first byte is sent, and locked until the call ends
    creation  as soon as the short code is known; then messages are sent, and the entry ends

A kill at any moment leaves an entry, a creation, both or nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import Field, ValidationError

from sealpipe.delivery.send import deliver
from sealpipe.errors import NotFoundError, ProtocolError, SealpipeError, StateError
from sealpipe.expire.share import was_expired
from sealpipe.mcp.models import Model
from sealpipe.prompts import Prompt
from sealpipe.request.create import SecureRequest
from sealpipe.resume import finish_entry
from sealpipe.session import Session
from sealpipe.share.post import Share
from sealpipe.state.creations import Creation, Kind, list_creations, note_creation
from sealpipe.state.entry import Entry, EntryStore, keep_entry_on_error
from sealpipe.state.files import identify_run
from sealpipe.state.outbox import Outbox
from sealpipe.state.receipt import Receipt

Created = TypeVar("Created", bound=Share | SecureRequest)

_PREFIX: Final = "mcp-"
_CODE: Final = re.compile(r"[A-Za-z0-9._~-]{1,100}")
"""A short code that an assistant may see: the service chooses it, and could write to the assistant
by it.
"""
_POLL_INTERVAL: Final = 0.25


class Notes(Model):
    """What only this server knows of what it made: no secret. `client` is the assistant's word.

    `sent_to` are the redacted recipients of the link. Of a request: `sink` is where its submission
    is stored, `prompts` are rows of id, text and type.
    """

    client: str
    sent_to: list[str]
    sink: str | None = None
    prompts: list[list[str]] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Record:
    """A share or a request that this server made.

    Without a short code it is not known whether it exists.
    """

    known: Creation
    notes: Notes
    is_finished: bool
    """Whether nothing is left to do: it exists, and its link was sent."""

    @property
    def receipt(self) -> Receipt:
        """A request's receipt, by which its submission is collected."""
        prompts, known = tuple(Prompt(*row) for row in self.notes.prompts), self.known
        return Receipt(
            known.short_code, known.public_key or "", prompts, title=known.title, name=known.name
        )

    @property
    def texts(self) -> tuple[str | None, ...]:
        """Its texts, none of which is a secret, even if somebody submits one as a value."""
        known, notes = self.known, self.notes
        words = tuple(word for row in notes.prompts for word in row)
        return (
            known.short_code,
            known.name,
            notes.client,
            known.title,
            notes.sink,
            known.link,
            *notes.sent_to,
            *words,
        )

    def has_ended(self, folder: Path) -> bool:
        """Return whether a share's link has stopped working, as far as this machine knows.

        Blocks.
        """
        has_passed = self.known.expires_at is not None and self.known.expires_at <= datetime.now(
            UTC
        )
        return has_passed or was_expired(
            folder.parent / "shares", self.known.base_url, self.known.short_code
        )


class AlreadyBegunError(StateError):
    """The same call has begun at the same moment, and nothing was sent by this one."""


def make_id() -> str:
    """Return a new id of a call."""
    return os.urandom(6).hex()


def make_name(made_id: str) -> str:
    """Return the name on this machine of what a call makes. The service never gets it."""
    return _PREFIX + made_id


def create(
    session: Session, folder: Path, made_id: str, work: Callable[[EntryStore], Created]
) -> Record:
    """Create a share or a request, and send its messages.

    `work` creates it with an entry in the outbox that it gets, and with notes: those of `Notes`, as
    `notes`. If a message is not sent, raises DeliveryError: the share or request exists all the
    same. Raises AlreadyBegunError if there is such an entry, or what has become of it.
    """
    created = work(_EntryOfCall(session, folder, made_id))
    with keep_entry_on_error(created.entry):
        return _finish(session, folder, created)


def find_record(
    session: Session, folder: Path, short_code: str, kind: Kind | None = None
) -> Record:
    """Return the record of a short code, of any kind unless one is given. Raises NotFoundError."""
    for each in list_created(session.base_url, folder):
        if each.known.short_code == short_code and kind in (None, each.known.kind):
            return each
    raise NotFoundError(
        f"this server made no {kind or 'share or request'} with that short code",
        remedy="call `list` for what it made",
    )


def list_created(base_url: str, folder: Path) -> Iterator[Record]:
    """Yield what this server made and exists."""
    for known in list_creations(folder.parent / "created", None, base_url):
        made_id = (known.name or "").removeprefix(_PREFIX)
        if known.name == make_name(made_id):
            with suppress(ValidationError):
                yield _make_record(folder, known, made_id)


def _make_record(folder: Path, known: Creation, made_id: str) -> Record:
    """Return the record of a creation. Raises ValidationError if its notes are not ours."""
    is_left = (folder.parent / "outbox" / f"{made_id}.sealed").exists()
    return Record(known, Notes.model_validate(known.notes), is_finished=not is_left)


def list_records(session: Session, folder: Path) -> list[Record]:
    """List everything of one service, newest first.

    What exists, and what it is not known of whether it exists.
    """
    created = list(list_created(session.base_url, folder))
    names = {each.known.name for each in created}
    begun = [each for each in _list_begun(session, folder) if each.known.name not in names]
    return sorted(
        [*created, *begun],
        key=lambda each: (each.known.created_at, each.known.name),
        reverse=True,
    )


def settle(session: Session, folder: Path) -> None:
    """Finish the requests that a killed process of this server had begun.

    What somebody else works on and what cannot be finished now is left alone. So is all that would
    go to somebody, as every share does: a call that was cancelled sends nothing, unless the same
    call or a person says so again.
    """
    outbox = _open_outbox(session, folder)
    for made_id, meta, _ in _read_entries(session, outbox):
        if meta["kind"] == "request" and not meta.get("recipients"):
            with suppress(SealpipeError):
                entry = outbox.open(made_id)
                if isinstance(entry, Entry):
                    _resume(session, folder, entry)


def finish(session: Session, folder: Path, made_id: str) -> tuple[Record | None, bool]:
    """Finish what an earlier call left, and return its record.

    Also whether there was anything to finish.

    The record is None if nothing was created. What is left of a share that has ended is dropped.
    Waits for a call that works on it. Raises StateError if that takes too long, or what is left
    cannot be read, and the errors of creating and sending.
    """
    budget = session.start_budget()
    is_left = False
    while True:
        entry = _open_outbox(session, folder).open(made_id)
        if entry == "busy":
            is_left = True
            if budget.get_remaining() <= _POLL_INTERVAL:
                raise StateError(
                    "another call is at work on the same", remedy="wait, then call `list`"
                )
            session.wait(_POLL_INTERVAL)
            continue
        # After it: a creation is noted before the entry ends.
        if entry == "gone":
            return _find_created(session, folder, made_id), is_left
        with keep_entry_on_error(entry):
            known = _find_created(session, folder, made_id)
            if known is not None and known.has_ended(folder):
                entry.end()
                return known, False
        return _resume(session, folder, entry), True


def _resume(session: Session, folder: Path, entry: Entry) -> Record:
    created = finish_entry(session, entry)
    with keep_entry_on_error(created.entry):
        return _finish(session, folder, created)


def _finish(session: Session, folder: Path, created: Share | SecureRequest) -> Record:
    """Note what was created, send its messages, and end its entry."""
    if not _CODE.fullmatch(created.short_code):
        raise ProtocolError("the service's short code is not a word of letters and digits")
    entry = created.entry
    assert entry is not None  # noqa: S101 - each call has one
    is_request = created.kind == "request"
    links = (
        (created.link.reveal(), getattr(created, "public_key", None))
        if is_request
        else (None, None)
    )
    known = Creation(
        "request" if is_request else "share",
        session.base_url,
        created.short_code,
        created.expires_at,
        created.name,
        created.title,
        entry.run,
        *links,
        created_at=entry.created_at,
        notes=entry.meta["notes"],
    )
    note_creation(folder.parent / "created", known)
    if created.deliveries is not None:
        deliver(session, created)
    with suppress(StateError):  # everything is done: the next call ends the entry
        created.delivered()
    return Record(known, Notes.model_validate(known.notes), is_finished=True)


@dataclass(frozen=True, slots=True)
class _EntryOfCall:
    """The outbox for one call.

    Its entry has the call's id, and there is none of what was made already.
    """

    session: Session
    folder: Path
    made_id: str

    def prepare(self) -> None:
        """Make the folder. Raises StateError."""
        _open_outbox(self.session, self.folder).prepare()

    def add(self, meta: Mapping[str, Any], body: bytes | bytearray) -> Entry:
        """Store the entry. Raises AlreadyBegunError and StateError: then nothing may be sent."""
        try:
            entry = _open_outbox(self.session, self.folder).add(meta, body, entry_id=self.made_id)
        except FileExistsError:
            raise AlreadyBegunError("the same call has just begun") from None
        try:
            has_ended = _find_created(self.session, self.folder, self.made_id) is not None
        except BaseException:
            entry.end()
            raise
        if has_ended:  # since we looked
            entry.end()
            raise AlreadyBegunError("the same call has just ended")
        return entry


def _open_outbox(session: Session, folder: Path) -> Outbox:
    """Open the outbox of the state directory, which the command line also uses.

    `folder` is the server's own.
    """
    return Outbox(folder.parent / "outbox", session.credential, identify_run(os.environ))


def _find_created(session: Session, folder: Path, made_id: str) -> Record | None:
    """Return what a call made.

    Raises StateError if a creation cannot be read: it may be this one.
    """
    created, name = folder.parent / "created", make_name(made_id)
    found = list_creations(created, None, session.base_url, is_strict=True)
    known = next((each for each in found if each.name == name), None)
    try:
        return None if known is None else _make_record(folder, known, made_id)
    except ValidationError:
        raise StateError(
            f"the record of this call in {created} is damaged ({name}); nothing was sent",
            remedy="look whether what you want is in `list`; if not, wait ten minutes",
        ) from None


def _list_begun(session: Session, folder: Path) -> Iterator[Record]:
    """Yield what is in the outbox as if it did not exist.

    Its short code is told once it is noted.
    """
    for _, meta, created_at in _read_entries(session, _open_outbox(session, folder)):
        kind: Kind = "request" if meta["kind"] == "request" else "share"
        known = Creation(
            kind,
            session.base_url,
            "",
            name=meta["name"],
            title=meta["title"],
            created_at=created_at,
            notes=meta.get("notes", {}),
        )
        with suppress(ValidationError):
            yield Record(known, Notes.model_validate(known.notes), is_finished=False)


def _read_entries(
    session: Session, outbox: Outbox
) -> Iterator[tuple[str, Mapping[str, Any], datetime]]:
    """Yield id, notes and time of this server's entries, also of those that somebody works on."""
    for listed in outbox.list():
        with suppress(StateError):  # a damaged entry, or one of another key
            meta = outbox.read_meta(listed.id)
            is_ours = meta.get("name") == make_name(listed.id)
            if is_ours and meta["base_url"] == session.base_url:
                yield listed.id, meta, listed.created_at
