"""Make tests/wire/cctv/: one file for each scenario (its README.md describes the form).

    python tests/wire/make_cctv.py          writes the files; the same bytes on every run

What is in them comes from wire/making/, which imports nothing of sealpipe. Randomness is SHAKE-256 of a name.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from wire.making import boxes, encodings, envelopes, keys, plaintexts
from wire.making.primitives import Vector

FOLDER = Path(__file__).resolve().parent / "cctv"
SOURCES = (
    encodings.encodings,
    encodings.fragments,
    envelopes.opened,
    envelopes.made,
    boxes.opened,
    boxes.made,
    plaintexts.read,
    plaintexts.written,
    keys.pairs,
    keys.tokens,
)


def vectors() -> dict[str, Vector]:
    """Every vector by its file's name."""
    made: dict[str, Vector] = {}
    for vector in (vector for source in SOURCES for vector in source()):
        words = re.sub(r"[^a-z0-9]+", "-", vector.comment.lower().replace("=", "equals sign")).strip("-")
        name = f"{vector.kind.replace(' ', '-')}_{words}"
        if name in made:
            raise ValueError(f"two vectors are called {name}")
        made[name] = vector
    return made


def text(vector: Vector) -> bytes:
    """The bytes of a vector's file."""
    headers = {"expect": vector.expect, "kind": vector.kind, "comment": vector.comment}
    lines = [f"{name}: {value}\n" for name, value in (headers | vector.given | vector.result).items()]
    return "".join([*lines, "\n"]).encode() + vector.body


def main() -> None:
    made = vectors()
    for old in FOLDER.iterdir():
        if "." not in old.name and old.name not in made:
            old.unlink()
    for name, vector in made.items():
        (FOLDER / name).write_bytes(text(vector))


if __name__ == "__main__":
    main()
