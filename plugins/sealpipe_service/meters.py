"""What a server counts, in memory that all of its processes share.

Each process writes cells of its own, and whoever reads sums them: nobody waits for anybody, and
what a killed process has counted stays, for the one after it goes on there. All cells are laid out
beforehand: no label comes from a caller.
"""

from __future__ import annotations

import bisect
import itertools
import mmap
import os
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Final, Literal

from .routes import METHODS, OTHER, ROUTES

BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds, in seconds. Beyond the last there is one bucket more."""
NONE: Final = "none"
"""The status of a request whose caller went away before the answer."""
STATUSES: Final = (
    *("200", "201", "202", "204", "304", "400", "401", "403", "404", "405", "406", "408", "409"),
    *("410", "411", "412", "413", "415", "421", "428", "429", "431", "500", "503", OTHER, NONE),
)
Labels = tuple[str, ...]


@dataclass(frozen=True)
class Family:
    """Metrics of one name, one for each combination of labels' values."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """How many cells one has: a histogram its buckets, and the sum in microseconds."""
        return len(BUCKETS) + 2 if self.kind == "histogram" else 1

    def combinations(self) -> Iterator[Labels]:
        """Yield all combinations."""
        return itertools.product(*self.labels.values())


FAMILIES: Final = (
    Family(
        "requests",
        "counter",
        "Requests that were answered.",
        {"route": ROUTES, "method": METHODS, "status": STATUSES},
    ),
    Family(
        "request_duration_seconds",
        "histogram",
        "How long requests took, from head to answer.",
        {"route": ROUTES},
    ),
    Family("requests_in_progress", "gauge", "Requests that are not answered yet."),
    Family(
        "deliveries",
        "counter",
        "Attempts to deliver; not_sent where an address, a key or a setting forbids it.",
        {"kind": ("webhook", "mail"), "result": ("delivered", "failed", "not_sent")},
    ),
    Family("deliveries_given_up", "counter", "Deliveries after their last attempt."),
    Family(
        "sweeps",
        "counter",
        "Looks for what has expired or is not kept any longer.",
        {"result": ("done", "failed")},
    ),
    Family("database_errors", "counter", "Times that the database did not answer."),
)


def _lay_out() -> tuple[Mapping[tuple[str, Labels], int], int]:
    places, end = {}, 0
    for family in FAMILIES:
        for labels in family.combinations():
            places[family.name, labels] = end
            end += family.width
    return places, end


PLACES, CELLS = _lay_out()
"""The first cell of each metric, and how many cells there are."""
_CELL: Final = "q"
_SLOT: Final = CELLS * 8


class Meters:
    """Counts, from any thread. Without cells that are shared, it counts for itself."""

    def __init__(self, cells: memoryview | None = None) -> None:
        self._cells = memoryview(bytearray(_SLOT)).cast(_CELL) if cells is None else cells
        self._lock = threading.Lock()

    def add(self, name: str, *labels: str, by: int = 1) -> None:
        """Count, in a metric of `FAMILIES`."""
        place = PLACES[name, labels]
        with self._lock:
            self._cells[place] += by

    def observe(self, name: str, seconds: float, *labels: str) -> None:
        """Count a time in a histogram."""
        place = PLACES[name, labels]
        with self._lock:
            self._cells[place + bisect.bisect_left(BUCKETS, seconds)] += 1
            self._cells[place + len(BUCKETS) + 1] += round(seconds * 1e6)

    def total(self) -> Sequence[int]:
        """Return all cells."""
        return list(self._cells)


class Board:
    """The memory of all processes: a file without a name.

    `starts` is how many processes were started.
    """

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.starts = 0
        self._file = _make_file()
        os.ftruncate(self._file.fileno(), slots * _SLOT)
        self._cells = _map(self.fileno())

    def fileno(self) -> int:
        """Return its descriptor, for a process that writes there."""
        return self._file.fileno()

    def total(self) -> Sequence[int]:
        """Return the sums over all processes."""
        cells = list(self._cells)
        return [sum(cells[each::CELLS]) for each in range(CELLS)]

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def open_slot(descriptor: int, slot: int) -> Meters:
    """Return the meters of a process, where what is under way begins anew."""
    cells = _map(descriptor)[slot * CELLS : (slot + 1) * CELLS]
    for family in FAMILIES:
        if family.kind == "gauge":
            for labels in family.combinations():
                cells[PLACES[family.name, labels]] = 0
    return Meters(cells)


def _map(descriptor: int) -> memoryview:
    return memoryview(mmap.mmap(descriptor, 0)).cast(_CELL)


def _make_file() -> IO[bytes]:
    if hasattr(os, "memfd_create"):  # Linux; a root that is read-only has no place for files
        return os.fdopen(os.memfd_create("meters"), "r+b", buffering=0)
    return tempfile.TemporaryFile(buffering=0)
