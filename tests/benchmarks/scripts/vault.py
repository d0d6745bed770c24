"""200 references to one Vault, and the same reads with hvac in a loop, by turns: what each took, in
ms, as JSON.

    python vault.py FOLDER COUNT RUNS      VAULT_ADDR and VAULT_TOKEN are set

The keys are FOLDER/0, FOLDER/1, ... under secret/; everything is imported before the clock runs.
"""

import json
import os
import sys
import time
from collections.abc import Callable

import hvac

import sealpipe


def ours(paths: list[str]) -> list[str]:
    fields = sealpipe.resolve([f"vault:secret/{path}#password" for path in paths])
    return [field.value.reveal() for field in fields]


def theirs(paths: list[str]) -> list[str]:
    client = hvac.Client(os.environ["VAULT_ADDR"], token=os.environ["VAULT_TOKEN"])
    read = client.secrets.kv.v2.read_secret_version
    return [read(path, raise_on_deleted_version=True)["data"]["data"]["password"] for path in paths]


def took(way: Callable[[list[str]], list[str]], paths: list[str]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    found = way(paths)
    spent = time.perf_counter() - wall, time.process_time() - cpu
    assert found == [f"value of {path}" for path in paths]
    return 1000 * spent[0], 1000 * spent[1]


def main() -> None:
    folder, count, runs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    paths = [f"{folder}/{number}" for number in range(count)]
    took(ours, paths[:1])  # so that both are imported whole
    took(theirs, paths[:1])
    turns = [(took(ours, paths), took(theirs, paths)) for _ in range(runs)]
    told = {
        kind: [[turn[side][index] for turn in turns] for side in (0, 1)]
        for index, kind in enumerate(("wall", "cpu"))
    }
    print(json.dumps(told))


main()
