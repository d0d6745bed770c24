"""What the ways of a share and of a request have in common: an outbox entry that ends when the link is safe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sealpipe.errors import PluginError, PublicKeyMismatchError, ServiceError, StateError, UsageError
from sealpipe.state.entry import Entry

if TYPE_CHECKING:
    from sealpipe.flows.deliver.send import Deliveries


@dataclass(slots=True)
class JournaledLink:
    """Something whose link exists here and nowhere else, until somebody says that it is safe."""

    entry: Entry | None = field(default=None, repr=False, kw_only=True)

    def delivered(self) -> None:
        """The link is safe where it belongs: ends the outbox entry. Raises StateError where that fails."""
        entry, self.entry = self.entry, None
        if entry is not None:
            entry.end()

    def keep(self) -> None:
        """Leave the outbox entry to `resume`, now or in another process."""
        entry, self.entry = self.entry, None
        if entry is not None:
            entry.close()


@contextmanager
def settle_entry(entry: Entry | None, *, unclear: bool) -> Iterator[None]:
    """Send in this block. An error leaves the entry where the outcome is unclear, and ends it where nothing happened.

    `unclear`: it was sent by an earlier process.
    """
    try:
        yield
    except PublicKeyMismatchError as error:
        error.unclear = False  # it is there, and of no use: nothing is left to find out
        discard_entry(entry)
        raise
    except ServiceError as error:
        if entry is not None and error.unclear:
            error.outbox_id = entry.id
            error.remedy = f"run `sealpipe resume {entry.id}`: it sends the same bytes under the same key"
        else:
            discard_entry(entry)
        raise
    except (UsageError, PluginError):
        # A setting of the network is wrong (a certificate file, a proxy), or a sink failed: nothing was sent.
        if not unclear:
            discard_entry(entry)
        raise


def discard_entry(entry: Entry | None) -> None:
    """End an entry that nothing came of."""
    if entry is not None:
        with suppress(StateError):  # why it failed matters more than a file that could not be removed
            entry.end()


def load_deliveries(meta: Mapping[str, Any], entry: Entry | None = None) -> Deliveries | None:
    """The messages of what an entry tells of, and how far each of them is; None for none."""
    if not meta.get("recipients"):
        return None
    from sealpipe.flows.deliver.send import restore_deliveries

    return restore_deliveries(meta, {} if entry is None else entry.deliveries)
