"""What 50 references to encrypted files cost, beside the same reads with the store's own program in
a loop.

The key derivation of the KeePass database takes no time here: in real life each opening takes about
a second more.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pyrage
from bench import Bench
from measuring import Command, Pair
from table import Row

sys.path.append(str(Path(__file__).resolve().parents[1]))

from support.parts import ROOT, load_module

age_keys = load_module("age_keys", ROOT / "tests/plugins/age/keys.py")
databases = load_module("keepass_databases", ROOT / "tests/plugins/keepass/databases.py")

COUNT, SHORT_COUNT = 50, 2


def rows(bench: Bench) -> Iterator[Row]:
    """The rows of this group."""
    count = SHORT_COUNT if bench.short else COUNT
    folder = bench.folder / "files"
    folder.mkdir()
    keys, team = age_keys.Keys(folder), databases.Databases(folder)
    recipients = [pyrage.x25519.Recipient.from_str(keys.recipient)]
    database = team.open()
    for number in range(count):
        value = f"value {number}"
        (folder / f"{number}.age").write_bytes(pyrage.encrypt(value.encode(), recipients))
        database.add_entry(database.root_group, f"entry {number}", "", value)
    database.save()
    age = _by_turns(bench, "age", {**keys.environ(), "KEYS": str(keys.file)}, folder, count)
    keepass = _by_turns(
        bench, "keepass", {**team.environ(), "PASSWORD": databases.PASSWORD}, folder, count
    )
    yield Row(
        "age-wall",
        f"{count} references to files of age; Debian's `age -d` in a loop",
        "ms",
        age,
        0.5,
    )
    what = f"{count} references to one KeePass database; `keepassxc-cli show` in a loop"
    yield Row("keepass-wall", what, "ms", keepass, 0.5)


def _by_turns(bench: Bench, store: str, environ: dict[str, str], folder: Path, count: int) -> Pair:
    sides: tuple[list[float], list[float]] = ([], [])
    for _ in range(bench.runs):
        for side, kind in zip(sides, ("ours", "theirs"), strict=True):
            words = bench.python("files.py", kind, store, str(count), folder)
            side.append(json.loads(bench.meter.run(Command(words, environ)).out))
    return Pair.of(*sides)
