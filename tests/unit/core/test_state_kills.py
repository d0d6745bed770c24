"""SIGKILL at each call that reads or changes a file of state/: what was acknowledged is there, the
rest is whole.

What commands do with these files: tests/cli/kills.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from sealpipe.state.entry import Entry
from sealpipe.state.files import make_temporary_path, replace_file
from support.strace import Point, killing, only, points, tracing
from support.terminal import PATIENCE
from unit.core import state_operations
from unit.core.state_operations import OPERATIONS, Operations

MATTER = (
    "mkdir", "openat", "read", "fchmod", "chmod", "flock", "write", "fsync", "ftruncate", "linkat",
    "rename", "renameat", "renameat2", "unlink", "unlinkat", "exit_group",
)  # fmt: skip
"""The calls that read or change a file, and the last one of all."""
PARTS = 3
"""One test with all calls could exceed the time limit of a test on a busy machine."""


def run(place: Path, under: Sequence[str] = ()) -> tuple[int, list[str]]:
    """Do all operations in a process of their own; its exit code, and what it has done by its own
    account.
    """
    (place / "warm").mkdir(parents=True)
    done = subprocess.run(
        [
            *under,
            sys.executable,
            "-P",
            state_operations.__file__,
            str(place / "warm"),
            str(place / "folder"),
        ],
        capture_output=True,
        env={"PATH": os.defpath, "PYTHONHASHSEED": "0", "HOME": str(place)},
        timeout=PATIENCE,
        check=False,
    )
    assert not done.stderr, done
    return done.returncode, done.stdout.decode().split()


def look(folder: Path) -> dict[str, Any]:
    """What a process that comes later finds there. A file that it would not expect is `litter`."""
    paths = [path for path in folder.rglob("*") if path.is_file()] if folder.exists() else []
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths} <= {0o600}
    found: dict[str, Any] = {"entries": [], "ledger": [], "files": {}, "litter": []}
    outbox = Operations(folder).outbox
    for path in paths:
        if path.suffix == ".sealed":
            entry = outbox.open(path.stem)
            assert isinstance(entry, Entry)
            found["entries"].append(
                (bytes(entry.body), entry.key, entry.is_stored, entry.response, entry.deliveries)
            )
            entry.close()
        elif path.suffix == ".jsonl":
            lines = path.read_bytes().splitlines(keepends=True)
            # after its head.
            found["ledger"] += [json.loads(line) for line in lines[1:] if line.endswith(b"\n")]
        elif path.name in ("link", "receipt"):
            found["files"][path.name] = path.read_bytes()
        else:
            found["litter"].append(path.name)
    return found


def states(place: Path) -> list[dict[str, Any]]:
    """What there is after none of the operations, after the first, and so on."""
    found = []
    for number in range(len(OPERATIONS) + 1):
        operations = Operations(place / str(number))
        for name in OPERATIONS[:number]:
            getattr(operations, name)()
        operations.close()
        found.append(look(operations.folder))
    return found


@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_acknowledged_survives_a_kill_and_the_rest_happened_or_not(
    part: int, tmp_path: Path
) -> None:
    expected = states(tmp_path / "states")
    assert [number for number, each in enumerate(expected[1:]) if each == expected[number]] == [
        OPERATIONS.index("reopen"), OPERATIONS.index("open_ledger")
    ], "all others leave something"  # fmt: skip
    run(tmp_path / "before")  # who is first compiles modules, too, and makes more calls
    log = tmp_path / "trace"
    assert run(tmp_path / "undisturbed", tracing(log)) == (0, list(OPERATIONS))
    found = only(points(log, str(tmp_path / "undisturbed" / "folder" / "outbox")), MATTER)
    assert len(found) > 60

    def kill(point: Point) -> str:
        place = tmp_path / str(point).replace(" ", "-")
        code, done = run(place, killing(point, place.with_suffix(".log")))
        assert (code, tuple(done)) == (-9, OPERATIONS[: len(done)])
        there = look(place / "folder")
        receipt = place / "folder" / "files" / "receipt"
        if there["litter"] == [make_temporary_path(receipt).name] and point.name.startswith(
            "rename"
        ):
            replace_file(receipt, receipt.read_bytes())  # the next one clears it away
            there = look(place / "folder")
        return (
            ""
            if there in expected[len(done) : len(done) + 2]
            else f"{point} {point.text[:60]}: {there}"[:500]
        )

    with ThreadPoolExecutor(3) as pool:
        assert [wrong for wrong in pool.map(kill, found[part::PARTS]) if wrong] == []
