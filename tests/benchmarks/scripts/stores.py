"""50 references to a store, or the same reads with the vendor's own client in a loop: what it took,
in ms.

    python stores.py SIDE STORE COUNT WHERE      SIDE is ours or theirs, WHERE one place or many

The environment says where the store is. One read before the clock runs imports everything.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import onepasswordconnectsdk
from infisical_sdk import InfisicalSDKClient

import sealpipe

PROJECT = "3c90c3cc-0d44-4b50-8888-8dd25736052a"
Names = Sequence[tuple[str, str]]


def ours(store: str, names: Names) -> list[str]:
    folder = {"doppler": "app", "infisical": f"{PROJECT}/dev", "op": "Prod"}[store]
    fields = sealpipe.resolve([f"{store}:{folder}/{place}#{name}" for place, name in names])
    return [field.value.reveal() for field in fields]


def doppler(names: Names) -> list[str]:
    program = Path(sys.executable).with_name("doppler")
    words = [
        program,
        "--api-host",
        os.environ["DOPPLER_API_HOST"],
        "--no-check-version",
        "secrets",
        "get",
        "--plain",
    ]
    runs = [[*words, "--project", "app", "--config", place, name] for place, name in names]
    return [
        subprocess.run(each, capture_output=True, text=True, check=True).stdout.rstrip("\n")
        for each in runs
    ]


def infisical(names: Names) -> list[str]:
    client = InfisicalSDKClient(
        os.environ["INFISICAL_API_URL"], os.environ["INFISICAL_TOKEN"], cache_ttl=None
    )
    read = client.secrets.get_secret_by_name
    return [read(name, "dev", f"/{place}", project_id=PROJECT).secretValue for place, name in names]


def op(names: Names) -> list[str]:
    client = onepasswordconnectsdk.new_client(
        os.environ["OP_CONNECT_HOST"], os.environ["OP_CONNECT_TOKEN"]
    )
    items = ((name, client.get_item(place, "Prod")) for place, name in names)
    return [
        next(field.value for field in item.fields if field.label == name) for name, item in items
    ]


THEIRS: dict[str, Callable[[Names], list[str]]] = {
    "doppler": doppler,
    "infisical": infisical,
    "op": op,
}


def main() -> None:
    side, store, count, where = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    names = [
        ("one" if where == "one" else f"place_{number}", f"NAME_{number}")
        for number in range(count)
    ]
    read: Callable[[Names], list[str]] = partial(ours, store) if side == "ours" else THEIRS[store]
    read(names[:1])  # so that all is imported
    began = time.perf_counter()
    found = read(names)
    spent = time.perf_counter() - began
    assert found == [f"value {number}" for number in range(count)]
    print(1000 * spent)


main()
