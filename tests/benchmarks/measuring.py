"""What a whole process costs: instructions as callgrind counts them, else CPU seconds; wall time;
peak memory.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from statistics import median

LAUNCHER = Path(__file__).with_name("launching.py")


@dataclass(frozen=True, slots=True)
class Command:
    """A command line and what its environment has beyond the usual."""

    words: Sequence[str | Path]
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Cost:
    """One run: milliseconds, bytes, and what it wrote to stdout."""

    wall: float
    cpu: float
    peak: int
    out: str


class MeasurementError(Exception):
    """A command that is measured ended with an error: then there is no figure."""


class Meter:
    """Runs commands in a home of their own. `callgrind` is None where it is not installed.

    With `once`, a command that has run is not run again for another figure of it.
    """

    def __init__(self, folder: Path, *, once: bool = False) -> None:
        self._folder = folder
        self._once = once
        self._costs: dict[tuple[object, ...], Cost] = {}
        self.callgrind = shutil.which("valgrind")

    def run(self, command: Command) -> Cost:
        """Run it once."""
        out, err = self._folder / "out", self._folder / "err"
        launched = subprocess.run(
            [sys.executable, "-I", "-S", LAUNCHER, out, err, *command.words],
            env=self._environ(command),
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        told = json.loads(launched.stdout)
        if told.pop("code") != 0:
            raise MeasurementError(f"{' '.join(map(str, command.words))}: {err.read_text()}")
        cost = Cost(out=out.read_text(), **told)
        self._costs[_identify(command)] = cost
        return cost

    def instructions(self, command: Command) -> float:
        """Instructions of one run, in millions, in user space. Only where there is callgrind."""
        log = self._folder / "callgrind"
        valgrind = [
            "valgrind",
            "--tool=callgrind",
            "--callgrind-out-file=/dev/null",
            f"--log-file={log}",
        ]
        self.run(Command([*valgrind, *command.words], command.environ))
        return int(re.findall(r"Collected : (\d+)", log.read_text())[-1]) / 1e6

    def cpu(self, command: Command) -> float:
        """User and system time of one run, in milliseconds."""
        return self._measure(command).cpu

    def wall(self, command: Command) -> float:
        """Time of one run, in milliseconds."""
        return self._measure(command).wall

    def _measure(self, command: Command) -> Cost:
        known = self._costs.get(_identify(command)) if self._once else None
        return known or self.run(command)

    def _environ(self, command: Command) -> dict[str, str]:
        bin_folder = Path(sys.executable).parent
        usual = {
            "PATH": os.pathsep.join([str(bin_folder), os.environ.get("PATH", os.defpath)]),
            "HOME": str(self._folder),
            "LANG": "C.UTF-8",
        }
        return usual | dict(command.environ)


def _identify(command: Command) -> tuple[object, ...]:
    return (*command.words, *sorted(command.environ.items()))


@dataclass(frozen=True, slots=True)
class Pair:
    """One figure of ours and theirs: medians, and the median of the ratios of runs that followed
    each other.
    """

    ours: float
    theirs: float
    ratio: float

    @classmethod
    def of(cls, ours: Sequence[float], theirs: Sequence[float]) -> Pair:
        """From runs that were made by turns."""
        ratios = [mine / other if other else inf for mine, other in zip(ours, theirs, strict=True)]
        return cls(median(ours), median(theirs), median(ratios))


def by_turns(ours: Command, theirs: Command, runs: int, figure: Callable[[Command], float]) -> Pair:
    """Measure both, one after the other, `runs` times."""
    found = [(figure(ours), figure(theirs)) for _ in range(runs)]
    return Pair.of([mine for mine, _ in found], [other for _, other in found])
