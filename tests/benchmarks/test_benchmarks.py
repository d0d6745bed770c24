"""The benchmarks run: every row is there, and what is compared really shares a secret.

No figure is tested.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from support.parts import not_installed

HERE = Path(__file__).parent
SECONDS = 1500
"""Most that a short run may take: 20 seconds of CPU, but ten minutes where much else
runs.
"""
pytestmark = pytest.mark.timeout(SECONDS + 60)
NAMES = [
    *("version", "help", "completion", "completion-wall"),
    *("share", "share-cpu", "share-wall", "share-one-root", "share-plugins"),
    *("share-custody-off", "share-wrap", "share-wrap-both", "share-sdk"),
    *("library-cpu", "library-wall", "library-memory"),
    *("large-cpu", "large-wall", "large-memory"),
    *("large-whole-cpu", "large-whole-wall", "large-service-wall"),
    *("creates-sync", "creates-sync-cpu", "creates-async", "creates-async-cpu"),
    *("vault-cpu", "vault-wall", "vault-far-wall"),
    *("gcp-sm-cpu", "gcp-sm-wall", "gcp-sm-far-wall"),
    *("azure-kv-cpu", "azure-kv-wall", "azure-kv-far-wall"),
]


@pytest.fixture(scope="module")
def short_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, dict[str, Any]]]:
    """What it prints, and its rows by name."""
    for name in ("azure-identity", "azure-keyvault-secrets", "google-cloud-secret-manager"):
        try:
            metadata.distribution(name)
        except metadata.PackageNotFoundError:
            not_installed(name)
    file = tmp_path_factory.mktemp("benchmarks") / "rows.json"
    # Each share that is compared is opened by its recipient: a link that opens to something else
    # ends the run.
    command = [sys.executable, HERE / "run.py", "--short", "--json", file]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, {row["name"]: row for row in json.loads(file.read_text())}


def test_every_figure_is_there(short_run: tuple[str, dict[str, dict[str, Any]]]) -> None:
    printed, rows = short_run
    assert list(rows) == NAMES
    for name, row in rows.items():
        assert f"| `{name}` | {row['what']} |" in printed
        assert row["pair"].keys() == {"ours", "theirs", "ratio"}


def test_instructions_are_counted_where_they_can_be(
    short_run: tuple[str, dict[str, dict[str, Any]]],
) -> None:
    _, rows = short_run
    row = rows["version"]
    assert row["unit"] == ("M instructions" if shutil.which("valgrind") else "ms CPU")
    # A Python that does nothing takes tens of millions of them, and tens of milliseconds.
    assert 5 < row["pair"]["theirs"] < 5_000


@pytest.mark.parametrize("link", ["nothing.example/s/abc#1AAAA", ""], ids=["wrong", "none"])
def test_a_command_that_shares_nothing_ends_the_run(link: str, tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path; from bench import Bench; from measuring import Command, Meter\n"
        "from other_end import OtherEnd\n"
        "folder = Path(sys.argv[2])\n"
        "with OtherEnd() as other:\n"
        "    bench = Bench(folder, Meter(folder), other, 1, True)\n"
        "    bench.opens(Command(['echo', sys.argv[3]], {}), 'DB_PASSWORD', 'x')\n"
    )
    command = [sys.executable, "-c", code, HERE, tmp_path, link]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0


def test_the_page_explains_every_figure() -> None:
    page = (HERE.parents[1] / "docs/contributing/benchmarks.md").read_text(encoding="utf-8")
    for name in NAMES:
        assert f"| `{name}` |" in page, (
            f"{name} is not in the table of docs/contributing/benchmarks.md"
        )
        assert page.count(f"`{name}`") > 1, (
            f"docs/contributing/benchmarks.md does not say what {name} means"
        )
