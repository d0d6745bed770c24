"""References to encrypted files, or the same reads with the store's own program in a loop: what it
took, in ms.

    python files.py SIDE STORE COUNT FOLDER      SIDE is ours or theirs

The environment has the keys. One read before the clock runs imports everything.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import sealpipe


def ours(store: str, folder: Path, count: int) -> list[str]:
    body = {"age": f"{folder}/{{}}.age", "keepass": "entry {}#Password"}[store]
    fields = sealpipe.resolve([f"{store}:{body.format(number)}" for number in range(count)])
    return [field.value.reveal() for field in fields]


def age(folder: Path, count: int) -> list[str]:
    return [
        run("age", "-d", "-i", os.environ["KEYS"], folder / f"{number}.age")
        for number in range(count)
    ]


def keepass(folder: Path, count: int) -> list[str]:
    words = ("keepassxc-cli", "show", "-q", "-s", "-a", "Password", folder / "team.kdbx")
    given = os.environ["PASSWORD"] + "\n"
    return [run(*words, f"entry {number}", given=given).rstrip("\n") for number in range(count)]


def run(*words: str | Path, given: str = "") -> str:
    return subprocess.run(words, input=given, capture_output=True, text=True, check=True).stdout


THEIRS: dict[str, Callable[[Path, int], list[str]]] = {"age": age, "keepass": keepass}


def main() -> None:
    side, store, count, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])
    read: Callable[[Path, int], list[str]] = (
        partial(ours, store) if side == "ours" else THEIRS[store]
    )
    read(folder, 1)  # so that all is imported
    began = time.perf_counter()
    found = read(folder, count)
    spent = time.perf_counter() - began
    assert found == [f"value {number}" for number in range(count)]
    print(1000 * spent)


main()
