"""Hostile submissions, each sealed for real, through the real collecting into every output and
every sink.

All of them are opened, picked and taken, and go to stdout (text and JSON) and into files, folders
and dotenv files; `--stores` of them into every store behind a network at once (OpenBao, AWS's
Secrets Manager and Parameter Store, Kubernetes, GitHub, GitLab, a keyring); `--commands` times some
of them through the real command line, against the rehearsal service. Exactly the intended keys
change, to exactly what was typed; nothing is written outside of a target; no output does anything
to a terminal or a CI system, or shows what does not belong there. Readers judge: dash, bash,
python-dotenv, a strict JSON parser, the stores' own clients. Prints the figures; ends with 1 where
a judge objects.

    python tests/endurance/hostile_submissions.py [--count 100000] [--stores 2000]
        [--commands 300] [--seed N]
"""

from __future__ import annotations

import argparse
import json
import secrets
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hypothesis import given, seed, settings
from hypothesis import strategies as st

from cli.collect.hostile_commands import WAYS, Commands
from cli.collect.hostile_expected import BATCH, batches
from cli.collect.hostile_stores import stores
from cli.collect.hostile_world import World, memory
from sealpipe_rehearsal.server import start
from support.hostile import MANY, submissions
from support.job import Job

PER_COMMAND = 12


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument(
        "--stores", type=int, default=2000, help="how many go into the stores behind a network"
    )
    parser.add_argument(
        "--commands", type=int, default=300, help="how often the command itself collects some"
    )
    parser.add_argument(
        "--seed", type=int, default=secrets.randbits(32), help="of the run to be repeated"
    )
    parser.add_argument(
        "--jobs", type=int, default=2, help="processes, each with a share and a seed of its own"
    )
    parser.add_argument("--part", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        print(json.dumps(play(options.count, options.stores, options.commands, options.seed)))
        return 0
    print(f"seed {options.seed}", flush=True)
    began, figures, failed = time.monotonic(), Counter[str](), 0
    parts = [start_part(options, number) for number in range(options.jobs)]
    for part in parts:
        out, _ = part.communicate()
        figures.update(json.loads(out) if part.returncode == 0 else {})
        failed += part.returncode != 0
    for what, number in sorted(figures.items()):
        print(f"{number:8} {what}")
    seconds = time.monotonic() - began
    print(
        f"{figures['submissions']} submissions in {seconds:.0f} s, {failed} of "
        f"{len(parts)} parts failed"
    )
    return int(failed > 0)


def start_part(options: argparse.Namespace, number: int) -> subprocess.Popen[str]:
    shares = (
        f"--{name}={getattr(options, name) // options.jobs}"
        for name in ("count", "stores", "commands")
    )
    words = [sys.executable, __file__, "--part", *shares, f"--seed={options.seed + number}"]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def play(count: int, into_stores: int, by_commands: int, first: int) -> Counter[str]:
    """One share; AssertionError (hypothesis shows the submissions) where a judge objects."""
    figures: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(dir=memory()) as folder:
        world = World(made(folder, "world"))
        if count:
            drawn(batches, world.play, count // BATCH, first)
            figures += world.figures
            said(figures)
        if into_stores:
            with stores(world) as found:
                drawn(submissions(), found.play, into_stores, first)
                found.judge()
                said(found.figures)
                figures += Counter(
                    {f"into {what}": number for what, number in found.figures.items()}
                )
        if by_commands:
            with start() as service:
                commands = Commands(Job(made(folder, "job"), service))
                several = st.lists(submissions(), min_size=PER_COMMAND, max_size=PER_COMMAND)
                for number, way in enumerate(WAYS):
                    drawn(
                        several,
                        lambda sent, way=way: commands.play(sent, way),
                        by_commands // len(WAYS),
                        first + number,
                    )
                figures += Counter(
                    {f"by the command, {what}": number for what, number in commands.figures.items()}
                )
    return figures


def drawn(
    strategy: st.SearchStrategy[object], judge: Callable[..., None], count: int, first: int
) -> None:
    """What hypothesis draws, that often, each to the judge."""

    @seed(first)
    @settings(MANY, max_examples=max(count, 1))
    @given(strategy)
    def every(one: object) -> None:
        judge(one)

    every()


def said(figures: Counter[str]) -> None:
    """How far it is."""
    print(dict(figures), file=sys.stderr, flush=True)


def made(folder: str, name: str) -> Path:
    path = Path(folder, name)
    path.mkdir(mode=0o700)
    return path


if __name__ == "__main__":
    sys.exit(main())
