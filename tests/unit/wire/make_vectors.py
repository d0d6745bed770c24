"""Make tests/unit/wire/vectors/: one file for each kind, one line for each vector (its README.md
describes the form).

    python tests/unit/wire/make_vectors.py          writes the files; the same bytes on every run

What is in them comes from wire/making/, which imports nothing of sealpipe. Randomness is SHAKE-256
of a name.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from unit.wire.making import boxes, encodings, envelopes, keys, plaintexts
from unit.wire.making.primitives import Vector

FOLDER = Path(__file__).resolve().parent / "vectors"
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
    """Every vector by its name."""
    made: dict[str, Vector] = {}
    for vector in (vector for source in SOURCES for vector in source()):
        words = re.sub(
            r"[^a-z0-9]+", "-", vector.comment.lower().replace("=", "equals sign")
        ).strip("-")
        name = f"{stem(vector.kind)}_{words}"
        if name in made:
            raise ValueError(f"two vectors are called {name}")
        made[name] = vector
    return made


def stem(kind: str) -> str:
    """A kind as names have it, of files and of vectors."""
    return kind.replace(" ", "-")


def line(name: str, vector: Vector) -> str:
    """A vector's line: JSON in printable ASCII."""
    members = {
        "name": name,
        "kind": vector.kind,
        "expect": vector.expect,
        "comment": vector.comment,
    }
    result = {"result": vector.result} if vector.result else {}
    return json.dumps(members | {"given": vector.given} | result, ensure_ascii=True) + "\n"


def files() -> dict[str, bytes]:
    """The bytes of every file by its name."""
    made: dict[str, bytes] = {}
    for name, vector in vectors().items():
        file = f"{stem(vector.kind)}.jsonl"
        made[file] = made.get(file, b"") + line(name, vector).encode()
    return made


def main() -> None:
    made = files()
    for old in FOLDER.glob("*.jsonl"):
        if old.name not in made:
            old.unlink()
    for name, content in made.items():
        (FOLDER / name).write_bytes(content)


if __name__ == "__main__":
    main()
