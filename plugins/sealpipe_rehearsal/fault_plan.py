"""The running fault plan: which row affects which request, and for how many more requests."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

ALWAYS = "always"
ANY = "*"


@dataclass(frozen=True)
class Pattern:
    """Matches requests by method and path under /v1; `path` None matches any.

    `*` or `{name}` is one segment.
    """

    method: str = ANY
    path: tuple[str, ...] | None = None

    def matches(self, method: str, path: tuple[str, ...]) -> bool:
        """Return whether a request matches."""
        if self.method not in (ANY, method):
            return False
        if self.path is None:
            return True
        return len(path) == len(self.path) and all(
            is_placeholder(want) or want == got for want, got in zip(self.path, path, strict=True)
        )


def is_placeholder(segment: str) -> bool:
    """Return whether a segment of a pattern or route matches any segment."""
    return segment == ANY or (segment.startswith("{") and segment.endswith("}"))


@dataclass(frozen=True)
class FaultRow:
    """One checked row of a plan.

    `times` None means always; the first `skip` matching requests pass unchanged.

    `source` is the row as written, `parameters` are the arguments of its fault.
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
    """A row, with the number of requests it has affected and will still affect (None: no limit)."""

    row: FaultRow
    applied: int
    left: int | None

    def as_json(self) -> dict[str, object]:
        """Return the row's JSON for the control API."""
        return {
            **self.row.source,
            "applied": self.applied,
            "left": ALWAYS if self.left is None else self.left,
        }


class FaultPlan:
    """The fault plan of a running service. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: list[FaultRow] = []
        self._matches: list[int] = []
        self._applied: list[int] = []

    def set(self, rows: Iterable[FaultRow]) -> None:
        """Replace the plan."""
        new = list(rows)
        with self._lock:
            self._rows, self._matches, self._applied = new, [0] * len(new), [0] * len(new)

    def add(self, rows: Iterable[FaultRow]) -> None:
        """Append rows to the plan."""
        new = list(rows)
        with self._lock:
            self._rows += new
            self._matches += [0] * len(new)
            self._applied += [0] * len(new)

    def next_fault(self, method: str, path: tuple[str, ...]) -> FaultRow | None:
        """Return the fault for a request.

        The first matching row that is past its `skip` and has times left.
        """
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
        """Return every row with its progress."""
        with self._lock:
            return [
                Progress(row, applied, None if row.times is None else row.times - applied)
                for row, applied in zip(self._rows, self._applied, strict=True)
            ]
