"""Measures actions/_setup/setup.sh, by uv and by pip, beside what one would write instead; prints a
table.

    python tests/e2e/actions/setup/measure.py [--runs N] [--extras LIST]

It uses the package index of the machine, `uv` beside the Python that runs it or in /usr, and pip of
that Python. Figures, not tests. Cold: with an empty cache. Warm: with the cache of the run before,
as on a machine of one's own.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median

ROOT = Path(__file__).resolve().parents[4]
INSTALLERS = ("uv", "pip")
OURS = 'bash "$ROOT/actions/_setup/setup.sh"'
THEIRS = {
    "uv": 'uv venv -q --python "$PYTHON" "$RUNNER_TEMP/v" && '
    'uv pip install -q --compile-bytecode --python "$RUNNER_TEMP/v" "$ROOT$WITH"',
    "pip": '"$PYTHON" -m venv "$RUNNER_TEMP/v" && "$RUNNER_TEMP/v/bin/pip" install -q "$ROOT$WITH"',
}
"""What the README of many an action does: newest versions, no hashes, a build in isolation."""


class Runner:
    """A job's folder and environment: the machine's own, but for the home."""

    def __init__(self, folder: Path, installer: str, extras: str) -> None:
        self.temp, self.home = folder / "temp", folder / "home"
        caches = ("PIP_CACHE_DIR", "UV_CACHE_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
        self.environ = {name: value for name, value in os.environ.items() if name not in caches} | {
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_OUTPUT": os.devnull,
            "SEALPIPE_SETUP_INSTALLER": installer,
            "SEALPIPE_SETUP_EXTRAS": extras,
            "ROOT": str(ROOT),
            "PYTHON": sys.executable,
            "WITH": f"[{extras}]" if extras else "",
        }

    def cost(self, command: str, *, new: bool = True, cold: bool = True) -> tuple[float, float]:
        """Run it: in a new RUNNER_TEMP, and with an empty cache, too.

        Seconds on the clock, and of CPU.
        """
        for folder, gone in ((self.temp, new), (self.home, cold)):
            if gone:
                shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True, exist_ok=True)
        began, before = time.monotonic(), getrusage(RUSAGE_CHILDREN)
        subprocess.run(
            ["bash", "-c", command],
            env=self.environ,
            cwd=self.temp,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        after = getrusage(RUSAGE_CHILDREN)
        return (
            time.monotonic() - began,
            after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        )


def measured(folder: Path, extras: str, runs: int) -> Iterator[tuple[str, list[list[float]]]]:
    """The rows: what uv costs, and what pip; medians of runs by turns."""
    runners = [Runner(folder / each, each, extras) for each in INSTALLERS]
    found: dict[str, list[list[tuple[float, float]]]] = {}
    for _ in range(runs):
        for number, (name, runner) in enumerate(zip(INSTALLERS, runners, strict=True)):
            for what, cost in (
                ("first step, cold", runner.cost(OURS)),
                ("first step, warm", runner.cost(OURS, cold=False)),
                ("every later step", runner.cost(OURS, new=False, cold=False)),
                ("a venv and install, cold", runner.cost(THEIRS[name])),
                ("a venv and install, warm", runner.cost(THEIRS[name], cold=False)),
            ):
                found.setdefault(what, [[] for _ in INSTALLERS])[number].append(cost)
    yield from (
        (what, [[*map(median, zip(*each, strict=True))] for each in both])
        for what, both in found.items()
    )


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5, help="how often each is taken (5)")
    parser.add_argument("--extras", default="vault", help="extras to install (vault)")
    chosen = parser.parse_args()
    system = (
        f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python "
        f"{platform.python_version()}"
    )
    versions = [
        subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()[:2]
        for words in _tools()
    ]
    print(
        f"{system}, {', '.join(map(' '.join, versions))}, extras {chosen.extras}, median "
        f"of {chosen.runs}"
    )
    print(
        f"load average {os.getloadavg()[0]:.1f} at the start\n\n| set-up | uv | pip |\n| "
        "--- | --: | --: |"
    )
    with tempfile.TemporaryDirectory(prefix="sealpipe-measure-") as folder:
        for what, costs in measured(Path(folder), chosen.extras, chosen.runs):
            cells = (f"{wall:.2f} s ({cpu:.2f} s CPU)" for wall, cpu in costs)
            print(f"| {what} | {' | '.join(cells)} |")


def _tools() -> list[list[str]]:
    uv = Path(sys.executable).with_name("uv")
    return [
        [str(uv) if uv.exists() else "uv", "--version"],
        [sys.executable, "-m", "pip", "--version"],
    ]


if __name__ == "__main__":
    main()
