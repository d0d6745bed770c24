"""Everything that `sealpipe.state.files` does to files, one operation after another.

As a process (`python -P state_operations.py WARM FOLDER`) it does all of them in WARM, so that
nothing is imported later, then all of them in FOLDER, and says each on stdout once it is done.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sealpipe.api.operation import Credential
from sealpipe.api.requests import Submission
from sealpipe.secret import Secret
from sealpipe.state.entry import Entry
from sealpipe.state.files import create_file, make_private_directory, remove_file, replace_file
from sealpipe.state.ledger import Ledger, PendingDelete, open_ledger
from sealpipe.state.outbox import Outbox

CREDENTIAL = Credential.parse(
    "svc_sk_live_CImPemhu0OnFu67o.qJD_fXTkHteKGs_0yDkgq7OPMa88-U4n6FfN7wYWebI."
    "NNY6bLKghJislAP-sRWdHiSlgw1UB3x7ui3diYhA2Z4"
)
META: dict[str, Any] = {
    "idempotency_key": "one",
    "fragment": Secret("1c4nary"),
    "passcode": None,
    "title": "t",
}
NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
SUBMISSIONS = [Submission(code, code * 3000) for code in ("a", "b")]
BASE_URL, CODE = "https://api.example/v1", "AbC"


class Operations:
    """What is open while they are done in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.outbox = Outbox(folder / "outbox", CREDENTIAL)
        self._entry: Entry | None = None
        self._ledger: Ledger | None = None

    @property
    def entry(self) -> Entry:
        assert self._entry is not None
        return self._entry

    @property
    def ledger(self) -> Ledger:
        assert self._ledger is not None
        return self._ledger

    def close(self) -> None:
        """Unlock everything, as the end of a process does."""
        for each in (self._entry, self._ledger):
            if each is not None:
                each.close()

    def add_entry(self) -> None:
        self._entry = self.outbox.add(META, b"ciphertext" * 1000, NOW)

    def note_new_key(self) -> None:
        self.entry.note_new_key("two")

    def note_stored(self) -> None:
        self.entry.note_stored()

    def note_response(self) -> None:
        self.entry.note_response({"short_code": CODE})

    def note_sending(self) -> None:
        self.entry.note_delivery(0, "sending")

    def reopen(self) -> None:
        self.entry.close()
        entry = self.outbox.open(self.entry.id)
        assert isinstance(entry, Entry)
        self._entry = entry

    def note_sent(self) -> None:
        self.entry.note_delivery(0, "sent")

    def open_ledger(self) -> None:
        self._ledger = open_ledger(self.folder / "requests", BASE_URL, CODE)

    def keep_submissions(self) -> None:
        self.ledger.keep(SUBMISSIONS)

    def note_write(self) -> None:
        self.ledger.note_write("a", "vault:secret", "storing")

    def note_delete(self) -> None:
        self.ledger.note_delete(PendingDelete(NOW))

    def settle(self) -> None:
        self.ledger.settle("expired")

    def create_file(self) -> None:
        create_file(
            make_private_directory(self.folder / "files") / "link", lambda: [b"l" * 5000, b"ink"]
        )

    def create_others(self) -> None:
        create_file(self.folder / "files" / "receipt", lambda: [b"old"])

    def replace_file(self) -> None:
        assert replace_file(self.folder / "files" / "receipt", b"new" * 3000, b"old")

    def remove_file(self) -> None:
        remove_file(self.folder / "files" / "link")

    def end_entry(self) -> None:
        self.entry.end()


OPERATIONS = tuple(
    name
    for name, each in vars(Operations).items()
    if callable(each) and name not in ("__init__", "close")
)
"""Their names, in their order."""


def _main() -> None:
    warm, folder = map(Path, sys.argv[1:])
    for place in (warm, folder):
        operations = Operations(place)
        for name in OPERATIONS:
            getattr(operations, name)()
            os.write(1, f"{name}\n".encode() if place == folder else b"")
        operations.close()


if __name__ == "__main__":
    _main()
