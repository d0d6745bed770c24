"""The figures as a table in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from measuring import Pair


@dataclass(frozen=True, slots=True)
class Row:
    """One figure under a name of its own.

    `target` bounds the ratio, or, with `bounds_ours`, our own value.
    """

    name: str
    what: str
    unit: str
    pair: Pair
    target: float | None = None
    bounds_ours: bool = False

    @property
    def met(self) -> bool:
        """Whether the target is kept; True where there is none."""
        return (
            self.target is None
            or (self.pair.ours if self.bounds_ours else self.pair.ratio) <= self.target
        )

    def cells(self) -> tuple[str, ...]:
        """As the table shows it."""
        target = (
            "" if self.target is None else f"{'ours ' if self.bounds_ours else ''}≤ {self.target:g}"
        )
        return (
            f"`{self.name}`",
            self.what,
            _value(self.pair.ours, self.unit),
            _value(self.pair.theirs, self.unit),
            f"{self.pair.ratio:.2f}",
            target if self.met else f"**{target}: missed**",
        )


def markdown(rows: Sequence[Row]) -> str:
    """The whole table."""
    lines = [
        ("figure", "of", "ours", "theirs", "ratio", "target"),
        ("---", "---", "--:", "--:", "--:", "---"),
    ]
    return "".join(
        f"| {' | '.join(cells)} |\n" for cells in [*lines, *(row.cells() for row in rows)]
    )


def _value(value: float, unit: str) -> str:
    return f"{value:,.0f} {unit}" if value >= 10 else f"{value:.2f} {unit}"
