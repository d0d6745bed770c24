"""What 50 references to one Google Secret Manager cost, beside Google's own client in a loop. The server is a fake."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench import Bench
from measuring import Command, Pair
from table import Row

sys.path.append(str(Path(__file__).resolve().parents[1]))

from support.fake_web import Asked
from support.parts import ROOT, load_module

fake = load_module("fake_secret_manager", ROOT / "tests/plugins/gcp/fake_secret_manager.py")

COUNT, SHORT_COUNT = 50, 5
DELAY = 0.02
"""Seconds: about what a request to a region nearby takes."""
TOKEN = "made-up"


def rows(bench: Bench) -> Iterator[Row]:
    """The rows of this group."""
    count = SHORT_COUNT if bench.short else COUNT
    with fake.FakeSecretManager() as server, tempfile.TemporaryDirectory() as folder:
        server.tokens.add(TOKEN)
        for name in (f"s{number}" for number in range(count)):
            server.hold(name, f"value of {name}".encode())
        file = Path(folder, "key.json")
        file.write_text(server.credentials())
        environ = {
            "GOOGLE_APPLICATION_CREDENTIALS": str(file),
            "GOOGLE_CLOUD_PROJECT": fake.PROJECT,
            "SEALPIPE_PLUGIN_GCP_SM__URL": server.base_url,
            "BENCH_TOKEN": TOKEN,
        }
        words = bench.python("gcp.py", str(count), str(bench.runs))
        near = _told(bench, words, environ)
        server.rule = _wait
        far = _told(bench, words, environ)
    what = f"{count} references to one Google Secret Manager; the same with Google's client in a loop"
    yield Row("gcp-sm-cpu", what, "ms CPU", near["cpu"])
    yield Row("gcp-sm-wall", "the same, the server on this machine", "ms", near["wall"])
    yield Row("gcp-sm-far-wall", f"the same, each answer {1000 * DELAY:.0f} ms later", "ms", far["wall"], 0.35)


def _told(bench: Bench, words: Sequence[str], environ: Mapping[str, str]) -> dict[str, Pair]:
    found = json.loads(bench.meter.run(Command(words, environ)).out)
    return {kind: Pair.of(*sides) for kind, sides in found.items()}


def _wait(_: Asked) -> None:
    time.sleep(DELAY)
