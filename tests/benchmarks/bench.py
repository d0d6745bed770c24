"""What every group of figures is measured with."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from measuring import Command, Meter, by_turns
from other_end import OtherEnd
from table import Row

SEALPIPE = Path(sys.executable).with_name("sealpipe")
SCRIPTS = Path(__file__).with_name("scripts")
COUNTS = 3
"""How often instructions are counted: they differ by a tenth of a percent."""
COUNTED_IN_SHORT = ("version",)
"""What a short run counts, to see that it works: counting takes fifty times as long as the command
itself.
"""


@dataclass(frozen=True, slots=True)
class Bench:
    """A place to work in, the other end, and how often a time is taken.

    `short`: only to see that it works.
    """

    folder: Path
    meter: Meter
    other: OtherEnd
    runs: int
    short: bool

    def at(self, environ: dict[str, str], **more: str) -> dict[str, str]:
        """The environment of a command that calls the service."""
        return {**environ, "SEALPIPE_STATE_DIR": str(self.folder / "state"), **more}

    def python(self, script: str, *arguments: str | Path) -> list[str | Path]:
        """The command line of one of the scripts."""
        return [sys.executable, SCRIPTS / script, *arguments]

    def counted(
        self, name: str, what: str, ours: Command, theirs: Command, target: float | None = None
    ) -> Row:
        """A row of instructions, or of CPU time where nothing counts instructions; in a short run,
        too.
        """
        if self.meter.callgrind is None or (self.short and name not in COUNTED_IN_SHORT):
            return self.timed(name, what, ours, theirs, target)
        pair = by_turns(ours, theirs, 1 if self.short else COUNTS, self.meter.instructions)
        return Row(name, what, "M instructions", pair, target)

    def timed(
        self, name: str, what: str, ours: Command, theirs: Command, target: float | None = None
    ) -> Row:
        """A row of CPU time."""
        return Row(name, what, "ms CPU", by_turns(ours, theirs, self.runs, self.meter.cpu), target)

    def opens(self, command: Command, label: str, value: str, tag: str = "svc") -> None:
        """Run it once, uncounted; what it prints is the link of a share that holds the value."""
        self.other.check(self.meter.run(command).out.strip(), label, value, tag)
