"""What 50 references to a store cost, beside the same reads with the vendor's own client in a loop:
requests and time.

The servers are the fakes of the tests. One that is far away takes 20 ms for each answer.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import Bench
from measuring import Command, Pair
from table import Row

sys.path.append(str(Path(__file__).resolve().parents[1]))

from plugins.doppler.fake_doppler import ACCOUNT, FakeDoppler
from plugins.infisical.fake_infisical import TOKEN, FakeInfisical
from plugins.onepassword.fake_op_connect import FakeConnect, made_id
from support.fake_web import Asked, FakeWeb

COUNT, SHORT_COUNT = 50, 2
CONNECT_TOKEN = "Canary-token-51aa"
FAR = 0.02
"""Seconds that a distant server takes to answer."""


@dataclass(frozen=True)
class Store:
    """A fake, the environment of both clients, and what fills it with NAME_0, NAME_1, ...: in one
    place, or in many.
    """

    fake: Callable[[], AbstractContextManager[Any]]
    client: str
    environ: Callable[[FakeWeb], Mapping[str, str]]
    fill: Callable[[Any, str, Mapping[str, str]], object]


def _connect() -> FakeConnect:
    fake = FakeConnect()
    fake.vault("Prod", CONNECT_TOKEN)
    return fake


STORES = {
    "doppler": Store(
        FakeDoppler,
        "Doppler's command line",
        lambda fake: {"DOPPLER_API_HOST": fake.base_url, "DOPPLER_TOKEN": ACCOUNT},
        lambda fake, place, values: fake.config("app", place, **values),
    ),
    "infisical": Store(
        FakeInfisical,
        "Infisical's SDK",
        lambda fake: {"INFISICAL_API_URL": fake.base_url, "INFISICAL_TOKEN": TOKEN},
        lambda fake, place, values: fake.folder("dev", f"/{place}", **values),
    ),
    "op": Store(
        _connect,
        "1Password's Connect client",
        lambda fake: {"OP_CONNECT_HOST": fake.base_url, "OP_CONNECT_TOKEN": CONNECT_TOKEN},
        lambda fake, place, values: fake.item(
            made_id(0, "v"),
            place,
            fields=[{"id": each, "label": each, "value": values[each]} for each in values],
        ),
    ),
}


def rows(bench: Bench) -> Iterator[Row]:
    """The rows of this group."""
    count = SHORT_COUNT if bench.short else COUNT
    for name, store in STORES.items():
        with store.fake() as fake:
            store.fill(
                fake, "one", {f"NAME_{number}": f"value {number}" for number in range(count)}
            )
            for number in range(count):
                store.fill(fake, f"place_{number}", {f"NAME_{number}": f"value {number}"})
            near = _by_turns(bench, name, fake, count, "one")
            fake.rule = _answer_late
            far = _by_turns(bench, name, fake, count, "many")
        what = f"{count} references to one place of {name}; {store.client} in a loop"
        yield Row(f"{name}-requests", what, "requests", near["requests"], 0.1)
        yield Row(f"{name}-wall", "the same, the server on this machine", "ms", near["wall"], 0.5)
        yield Row(
            f"{name}-requests-places",
            f"{count} references to {count} places",
            "requests",
            far["requests"],
            1,
        )
        yield Row(f"{name}-far-wall", "the same, 20 ms for each answer", "ms", far["wall"], 0.5)


def _answer_late(_asked: Asked) -> None:
    time.sleep(FAR)


def _by_turns(bench: Bench, name: str, fake: FakeWeb, count: int, where: str) -> dict[str, Pair]:
    found: dict[str, tuple[list[float], list[float]]] = {"wall": ([], []), "requests": ([], [])}
    for _ in range(bench.runs):
        for side, kind in enumerate(("ours", "theirs")):
            before = len(fake.asked)
            words = bench.python("stores.py", kind, name, str(count), where)
            told = json.loads(bench.meter.run(Command(words, STORES[name].environ(fake))).out)
            found["wall"][side].append(told)
            found["requests"][side].append(len(fake.asked) - before - 1)  # the first imports all
    return {each: Pair.of(*sides) for each, sides in found.items()}
