"""Which fault happens to which request: rows in their order, each for some requests, and what is left of them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

ALWAYS = "always"
ANY = "*"


@dataclass(frozen=True)
class Pattern:
    """Requests by method and path under /v1; `path` None is any. A `*` or `{name}` stands for one whole segment."""

    method: str = ANY
    path: tuple[str, ...] | None = None

    def matches(self, method: str, path: tuple[str, ...]) -> bool:
        """Whether a request is meant."""
        if self.method not in (ANY, method):
            return False
        if self.path is None:
            return True
        return len(path) == len(self.path) and all(
            is_placeholder(want) or want == got for want, got in zip(self.path, path, strict=True)
        )


def is_placeholder(segment: str) -> bool:
    """Whether a segment of a pattern, or of a route, stands for any."""
    return segment == ANY or (segment.startswith("{") and segment.endswith("}"))


@dataclass(frozen=True)
class FaultRow:
    """One row of a plan, checked. `times` None is always; `skip` requests of its kind pass it by first.

    `shown` is the row as somebody wrote it, `parameters` what its fault is called with.
    """

    pattern: Pattern
    fault: str
    after_commit: bool
    times: int | None
    skip: int
    parameters: Mapping[str, object]
    source: Mapping[str, object]

    def __str__(self) -> str:
        return f"{self.fault} {'after' if self.after_commit else 'before'} the commit"


@dataclass(frozen=True)
class Progress:
    """A row, to how many requests it has happened, and to how many it still will (None: to all)."""

    row: FaultRow
    applied: int
    left: int | None

    def as_json(self) -> dict[str, object]:
        """The members that the control door shows."""
        return {**self.row.source, "applied": self.applied, "left": ALWAYS if self.left is None else self.left}


class FaultPlan:
    """The plan of a running service. Safe from every thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: list[FaultRow] = []
        self._matches: list[int] = []
        self._applied: list[int] = []

    def set(self, rows: Iterable[FaultRow]) -> None:
        """This plan in place of the one before."""
        new = list(rows)
        with self._lock:
            self._rows, self._matches, self._applied = new, [0] * len(new), [0] * len(new)

    def add(self, rows: Iterable[FaultRow]) -> None:
        """These rows behind those that are there."""
        new = list(rows)
        with self._lock:
            self._rows += new
            self._matches += [0] * len(new)
            self._applied += [0] * len(new)

    def next_fault(self, method: str, path: tuple[str, ...]) -> FaultRow | None:
        """The fault for this request: of the first row that means it, is past its `skip` and has times left."""
        with self._lock:
            for number, row in enumerate(self._rows):
                if self._applied[number] == row.times or not row.pattern.matches(method, path):
                    continue
                self._matches[number] += 1
                if self._matches[number] > row.skip:
                    self._applied[number] += 1
                    return row
        return None

    def progress(self) -> list[Progress]:
        """Every row, and how far it has come."""
        with self._lock:
            return [
                Progress(row, applied, None if row.times is None else row.times - applied)
                for row, applied in zip(self._rows, self._applied, strict=True)
            ]
