"""The data keys of a batch, as a process has them in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from sealpipe.api.responses import escape_text
from sealpipe.batch.database.interface import Values, check_types
from sealpipe.batch.database.sealing import (
    DATA_KEY_ID_SIZE,
    Cell,
    DataKey,
    KeyWrapper,
    Members,
    make_damage_error,
)
from sealpipe.errors import StateError

T = TypeVar("T")


class MissingKeyError(StateError):
    """A blob names a data key that the database does not have.

    It was changed by hand; or `rekey` has replaced the key since the blob was read.
    """

    def __init__(self, key_id: bytes) -> None:
        damage = make_damage_error()
        super().__init__(damage.message, remedy=damage.remedy)
        self.key_id = key_id


def read_again(read: Callable[[], T]) -> T:
    """Return what `read` reads and opens; again as long as each time another data key is missing.

    Raises StateError as it does.
    """
    missing = b""
    while True:
        try:
            return read()
        except MissingKeyError as error:
            if error.key_id == missing:
                raise
            missing = error.key_id


class DataKeys:
    """Opens each blob of a batch by the data key that it names, and seals with the newest.

    `read` returns those that the database has. It is called again when a blob names an unknown one:
    another process has made it. Safe for threads, for nothing is ever forgotten.
    """

    def __init__(self, read: Callable[[], Iterable[DataKey]]) -> None:
        self._read = read
        self._keys: dict[bytes, DataKey] = {}
        self._newest: DataKey | None = None

    def load(self) -> None:
        """Read what the database has. Raises StateError if it was changed, or the key rotated."""
        self._keys.update({each.id: each for each in self._read()})

    def use_newest(self, id_: object) -> None:
        """Seal with this one, which the database has as the newest.

        Inside a transaction: no `rekey` removes it before the end. Raises StateError if a newer one
        is known: its time is in its seal, but the column can be changed by hand.
        """
        found = self._find(id_)
        if any(found.created_at < each.created_at for each in list(self._keys.values())):
            raise StateError(
                "the batch's database has an older data key than this process has used: it was "
                "restored from a backup, or changed by something other than sealpipe: nothing was "
                "done",
                remedy="run `sealpipe batch adopt FILE`, and start this process again",
            )
        self._newest = found

    def seal(self, cell: Cell, members: Members) -> bytes:
        """Seal members for one place, after `use_newest`. Raises StateError if they are no JSON."""
        assert self._newest is not None  # noqa: S101 - no transaction is without
        return self._newest.seal(cell, members)

    def open(self, cell: Cell, blob: bytes) -> dict[str, Any]:
        """See `Opener.open`."""
        return self._find(blob[:DATA_KEY_ID_SIZE]).open(cell, blob)

    def _find(self, id_: object) -> DataKey:
        if not isinstance(id_, bytes):
            raise make_damage_error()
        if id_ not in self._keys:
            self.load()
        if id_ not in self._keys:
            raise MissingKeyError(id_)
        return self._keys[id_]


def unwrap_data_keys(wrapper: KeyWrapper, found: Iterable[Values]) -> list[DataKey]:
    """Return the data keys that a database has.

    Raises StateError if they were changed, or are wrapped under another credential.
    """
    keys = []
    for values in found:
        id_, key_id, created_at, wrapped = check_types(values, "btib")
        if key_id != wrapper.credential.key_id:
            raise make_key_error(key_id, wrapper.credential.key_id)
        keys.append(wrapper.unwrap(id_, created_at, wrapped))
    return keys


def make_key_error(key_id: str, own: str) -> StateError:
    """Make the error for a batch of another API key than our `own`."""
    return StateError(
        f"the batch belongs to the API key {escape_text(key_id, 60)}, not to {own}: nothing was "
        "done",
        remedy="set SEALPIPE_API_KEY to the credential that created it; after a rotation, set "
        "SEALPIPE_API_KEY_PREVIOUS to the old one, and the new one takes over",
    )
