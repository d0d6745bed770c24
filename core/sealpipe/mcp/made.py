"""What this server made: one record for each share and request, so that later calls and processes find it again.

    begin     the record is written before anything is created, and stays locked until the outcome is known
    create    under the record's name, `mcp-ID`, which the outbox and the lists of this machine also show
    complete  the record gets the short code; then messages are sent, and the outbox entry ends

A kill at any moment leaves a record that is complete, or one that `sealpipe.mcp.unfinished` completes or removes: the
outbox decides.
Each record is a 0600 file of one JSON line in a 0700 folder. None holds a secret: a share's link is never kept.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sealpipe.cancellation import current
from sealpipe.errors import NotFoundError, ProtocolError, SealpipeError, StateError
from sealpipe.flows.session import Session
from sealpipe.prompts import Prompt
from sealpipe.state import (
    create_locked_file,
    identify_run,
    make_private_directory,
    open_locked_file,
    refuse_newer,
    remove_file,
    replace_file,
)
from sealpipe.state.creations import Creation, Kind, list_creations, note_creation
from sealpipe.state.entry import Entry, keep_entry_on_error
from sealpipe.state.outbox import Outbox
from sealpipe.state.receipt import Receipt
from sealpipe.values import format_time, parse_time

if TYPE_CHECKING:
    from sealpipe.flows.request.create import SecureRequest
    from sealpipe.flows.share.post import Share

    Created = TypeVar("Created", bound=Share | SecureRequest)

_PREFIX: Final = "mcp-"
_CODE: Final = re.compile(r"[A-Za-z0-9._~-]{1,100}")
"""A short code that an assistant may see: the service chooses it, and could write to the assistant by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A share or a request of the service at `base_url` that this server made, or was about to make.

    Without a `short_code` it is not known whether it exists. `title` and `client` are the assistant's words. `sent_to`
    are the redacted recipients of the link. Of a request: `sink` is where its submission is stored, `prompts` are rows
    of id, text and type, `link` is its collect link, `public_key` base64url.
    """

    id: str
    kind: Kind
    base_url: str
    created_at: datetime
    client: str
    short_code: str | None = None
    expires_at: datetime | None = None
    title: str | None = None
    sink: str | None = None
    sent_to: tuple[str, ...] = ()
    prompts: tuple[tuple[str, str, str], ...] = ()
    link: str | None = None
    public_key: str | None = None

    @property
    def receipt(self) -> Receipt:
        """A request's receipt, by which its submission is collected."""
        prompts = tuple(Prompt(*row) for row in self.prompts)
        return Receipt(self.short_code or "", self.public_key or "", prompts, title=self.title, name=self.name)

    @property
    def texts(self) -> tuple[str | None, ...]:
        """Its texts, none of which is a secret, even if somebody submits one as a value."""
        words = tuple(word for row in self.prompts for word in row)
        return (self.short_code, self.name, self.client, self.title, self.sink, self.link, *self.sent_to, *words)

    @property
    def name(self) -> str:
        """The name of the share or request on this machine. The service never gets it."""
        return _PREFIX + self.id


def plan(session: Session, kind: Kind, client: str, **members: Any) -> Made:
    """Return a new record, which is not written yet."""
    moment = datetime.now(UTC).replace(microsecond=0)
    return Made(
        id=os.urandom(6).hex(), kind=kind, base_url=session.base_url, created_at=moment, client=client, **members
    )


def open_outbox(session: Session, folder: Path) -> Outbox:
    """Open the outbox of the state directory, which the command line also uses. `folder` is the server's own."""
    return Outbox(folder.parent / "outbox", session.credential, identify_run(os.environ))


def create(session: Session, folder: Path, made: Made, work: Callable[[], Created]) -> Made:
    """Create a share or a request on record, send its messages, and return the completed record.

    `work` creates it under the record's name, with an entry in the outbox of `open_outbox`. If a message is not sent,
    raises DeliveryError: the share or request exists all the same. Raises FileExistsError if there is such a record.
    """
    current().raise_if_cancelled()
    lock = _begin(folder, made)
    try:
        created = work()
        with keep_entry_on_error(created.entry):
            return _finish(session, folder, made, created)
    finally:
        lock.release()


def read_made(folder: Path, made_id: str) -> Made | None:
    """Return a record by its id, complete or not; None if there is none."""
    return next(_read_all(folder / "made", made_id), None)


def list_made(folder: Path, base_url: str, *, is_complete: bool = True) -> list[Made]:
    """List everything of one service, newest first: what exists, or also what it is not known of whether it exists."""
    found = [each for each in _read_all(folder / "made") if each.base_url == base_url]
    found = [each for each in found if each.short_code is not None or not is_complete]
    return sorted(found, key=lambda each: (each.created_at, each.id), reverse=True)


def find_made(folder: Path, base_url: str, short_code: str, kind: Kind | None = None) -> Made:
    """Return the record of a short code, of any kind unless one is given. Raises NotFoundError."""
    for each in list_made(folder, base_url):
        if each.short_code == short_code and kind in (None, each.kind):
            return each
    raise NotFoundError(
        f"this server made no {kind or 'share or request'} with that short code", remedy="call `list` for what it made"
    )


def _finish(session: Session, folder: Path, made: Made, created: Created) -> Made:
    known = _complete(made, created)
    _write(folder, known)
    _note(folder.parent / "created", known, created)
    if created.deliveries is not None:
        from sealpipe.flows.deliver.send import deliver  # most have no messages

        deliver(session, created)
    with suppress(StateError):  # everything is done: `settle` ends the entry later
        created.delivered()
    return known


def resume(session: Session, folder: Path, made: Made, entry: Entry) -> Made:
    """Finish an open outbox entry, and return its completed record. Raises the errors of creating and sending."""
    from sealpipe.flows.resume import finish_entry

    created = finish_entry(session, entry)
    with keep_entry_on_error(created.entry):
        return _finish(session, folder, made, created)


def _complete(made: Made, created: Share | SecureRequest) -> Made:
    if not _CODE.fullmatch(created.short_code):
        raise ProtocolError("the service's short code is not a word of letters and digits")
    known = replace(made, short_code=created.short_code, expires_at=created.expires_at)
    if created.kind == "share":
        return known
    return replace(known, link=created.link.reveal(), public_key=getattr(created, "public_key", None))


def _note(folder: Path, made: Made, created: Share | SecureRequest) -> None:
    """Record it as the command line does, for its lists. A failure only costs the name there."""
    assert made.short_code is not None  # noqa: S101 - it is complete
    run = created.entry.run if created.entry else ""
    known = (made.created_at, made.expires_at, made.name, made.title, run, made.link, made.public_key)
    with suppress(StateError):
        note_creation(folder, Creation(made.kind, made.base_url, made.short_code, *known))


class RecordLock:
    """The lock of a record; it does not outlive its call, even one that is cancelled before it gets it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        """Release the lock. It can be repeated."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.release()


def lock_unfinished(folder: Path, base_url: str, made_id: str = "*") -> dict[str, RecordLock]:
    """Lock the records without a short code that nobody works on, and return the locks by name."""
    held = {}
    for each in _read_all(folder / "made", made_id):
        if each.base_url == base_url and each.short_code is None:
            with suppress(OSError):  # another call is at work on it, or has just finished it
                held[each.name] = RecordLock(open_locked_file(_get_path(folder, each)))
    return held


def settle_without_entry(folder: Path, made: Made) -> None:
    """Complete or remove a record that is in no outbox entry: the command line finished it, or nothing was sent."""
    if made.short_code is not None:
        return
    for each in list_creations(folder.parent / "created", made.kind, made.base_url):
        if each.name == made.name and _CODE.fullmatch(each.short_code):
            known = replace(made, short_code=each.short_code, expires_at=each.expires_at)
            _write(folder, replace(known, link=each.link, public_key=each.public_key))
            return
    with suppress(OSError):
        remove_file(_get_path(folder, made))


def _begin(folder: Path, made: Made) -> RecordLock:
    path = make_private_directory(folder / "made") / f"{made.id}.json"
    try:
        return RecordLock(create_locked_file(path, lambda: [_dump(made)]))
    except FileExistsError:
        raise
    except OSError as error:
        raise StateError(f"{path} cannot be written: {error.strerror}") from None


def _write(folder: Path, made: Made) -> None:
    path = _get_path(folder, made)
    try:
        replace_file(path, _dump(made))
    except OSError as error:
        raise StateError(f"{path} cannot be written: {error.strerror}") from None


def _get_path(folder: Path, made: Made) -> Path:
    return folder / "made" / f"{made.id}.json"


def _dump(made: Made) -> bytes:
    members = asdict(made)
    times = {name: members[name] and format_time(members[name]) for name in ("created_at", "expires_at")}
    return json.dumps({"schema": 1, **members, **times}, separators=(",", ":")).encode() + b"\n"


def _read_all(folder: Path, made_id: str = "*") -> Iterator[Made]:
    names = {each.name for each in fields(Made)}
    for path in sorted(folder.glob(f"{made_id}.json")) if folder.is_dir() else ():
        with suppress(OSError, ValueError, RecursionError):
            members: Any = json.loads(path.read_bytes())
            # a call that is repeated must not make again what a newer version has made
            refuse_newer(members, f"the record {path}")
            with suppress(KeyError, TypeError, AttributeError, SealpipeError):
                expires_at = members["expires_at"] and parse_time(members["expires_at"])
                times = {"created_at": parse_time(members["created_at"]), "expires_at": expires_at}
                known = {name: members[name] for name in names} | times
                known |= {"sent_to": tuple(members["sent_to"]), "prompts": tuple(map(tuple, members["prompts"]))}
                if members["schema"] == 1 and path.stem == members["id"]:
                    yield Made(**known)
