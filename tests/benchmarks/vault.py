"""What 200 references to one Vault cost, beside the same reads with hvac in a loop.

The server is OpenBao.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import SCRIPTS, Bench
from measuring import Command, Pair
from table import Row

sys.path.append(str(Path(__file__).resolve().parents[1]))

from support.openbao import Bao, dev_server

COUNT, SHORT_COUNT = 200, 5
FAR = 1.0
"""Milliseconds that the way to a Vault in the same region takes, in one direction."""


def rows(bench: Bench) -> Iterator[Row]:
    """The rows of this group."""
    count = SHORT_COUNT if bench.short else COUNT
    with dev_server() as bao:
        for number in range(count):
            bao.call(
                "POST",
                f"secret/data/app/{number}",
                {"data": {"password": f"value of app/{number}"}},
            )
        near = _told(bench, bao.addr, bao, count)
        with _far(bao) as addr:
            far = _told(bench, addr, bao, count)
    yield Row(
        "vault-cpu",
        f"{count} references to one Vault; the same with hvac in a loop",
        "ms CPU",
        near["cpu"],
    )
    yield Row("vault-wall", "the same, Vault on this machine", "ms", near["wall"], 0.8)
    yield Row("vault-far-wall", f"the same, Vault {FAR:g} ms away", "ms", far["wall"], 0.8)


def _told(bench: Bench, addr: str, bao: Bao, count: int) -> dict[str, Pair]:
    environ = {"VAULT_ADDR": addr, "VAULT_TOKEN": bao.root}
    words = bench.python("vault.py", "app", str(count), str(bench.runs))
    found = json.loads(bench.meter.run(Command(words, environ)).out)
    return {kind: Pair.of(*sides) for kind, sides in found.items()}


@contextmanager
def _far(bao: Bao) -> Iterator[str]:
    command = [sys.executable, SCRIPTS / "far.py", str(bao.port), str(FAR)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.terminate()
        process.communicate(timeout=30)
