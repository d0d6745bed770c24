"""The walk-throughs of docs/contributing: the source is built and tested as printed, and what they
name exists.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = ROOT / "docs/contributing"
SOURCE_PAGE = (PAGES / "add-a-source.md").read_text(encoding="utf-8")
FILES = (
    "shelf/source.py",
    "",
    "plugins/shelf/fake_shelf.py",
    "plugins/shelf/test_contract.py",
    "plugins/shelf/test_failures.py",
)
"""What each block of Python on the page is; the second is registered in `sources.py`."""


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A copy of the built-in plugins with the page's source, and the page's tests beside them."""
    folder = tmp_path_factory.mktemp("shelf")
    blocks = re.findall(r"^```python\n(.*?)^```", SOURCE_PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) == len(FILES)
    plugins = folder / "plugins/sealpipe_plugins"
    shutil.copytree(
        ROOT / "plugins/sealpipe_plugins", plugins, ignore=shutil.ignore_patterns("__pycache__")
    )
    made = {}
    for name, block in zip(FILES, blocks, strict=True):
        if not name:
            with (plugins / "sources.py").open("a", encoding="utf-8") as file:
                file.write(block)
            continue
        made[name] = (plugins if name.startswith("shelf") else folder / "tests") / name
        made[name].parent.mkdir(parents=True, exist_ok=True)
        made[name].write_text(block, encoding="utf-8")
    (plugins / "shelf/__init__.py").write_text('"""Shelf."""\n', encoding="utf-8")
    return made


def run(shelf: dict[str, Path], *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the copy in place of the plugins of this repository."""
    plugins, tests = (
        shelf["shelf/source.py"].parents[2],
        shelf["plugins/shelf/fake_shelf.py"].parents[2],
    )
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SEALPIPE_", "PYTEST_"))
    }
    path = os.pathsep.join(map(str, (plugins, tests, ROOT / "tests", ROOT / "core")))
    return subprocess.run(
        [sys.executable, *words],
        env={
            **kept,
            "PYTHONPATH": path,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        cwd=tests.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def test_the_source_on_the_page_fulfils_its_contract_and_fails_as_its_table_says(
    shelf: dict[str, Path],
) -> None:
    folder = shelf["plugins/shelf/test_contract.py"].parent
    plain = ("-c", os.devnull, "-p", "no:cacheprovider", "--import-mode=importlib")
    done = run(shelf, "-m", "pytest", "-q", *plain, str(folder))
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= 17, done.stdout


def test_the_source_on_the_page_is_listed(shelf: dict[str, Path]) -> None:
    done = run(shelf, "-m", "sealpipe", "plugins")
    assert re.search(r"source\s+shelf\s.*an item of Shelf: shelf:NAME#KEY", done.stdout), (
        done.stdout + done.stderr
    )


def test_the_fake_on_the_page_runs_outside_pytest_as_printed(shelf: dict[str, Path]) -> None:
    printed = re.search(
        r"^PYTHONPATH=tests python -i -c '(.*?)'$", SOURCE_PAGE, re.DOTALL | re.MULTILINE
    )
    assert printed is not None
    read = """
import os, sys
from sealpipe.__main__ import main
os.environ |= {"SHELF_TOKEN": "Canary-token-77bd", "SHELF_URL": shelf.base_url}
sys.argv = ["sealpipe", "doctor", "shelf"]
main()
"""
    done = run(shelf, "-u", "-c", printed[1] + read)
    assert done.stdout.startswith(
        "export SHELF_TOKEN=Canary-token-77bd SHELF_URL=http://127.0.0.1:"
    )
    assert "Shelf accepts the token" in done.stdout, done.stdout + done.stderr


def test_the_linter_has_nothing_to_say_about_the_source_on_the_page(shelf: dict[str, Path]) -> None:
    folder = shelf["shelf/source.py"].parents[3]
    source = [
        str(path) for path in (ROOT / "core", folder / "plugins", folder / "tests", ROOT / "tests")
    ]
    config = folder / "pyproject.toml"
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    config.write_text(
        re.sub(r"^src = .*$", f"src = {source}", settings, flags=re.MULTILINE), encoding="utf-8"
    )
    for words in (("check", "--no-cache"), ("format", "--no-cache", "--diff")):
        done = run(shelf, "-m", "ruff", *words, "--config", str(config), *map(str, shelf.values()))
        assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for path in shelf.values() for line in path.read_text().splitlines()]
    assert max(map(len, lines)) <= 100  # of lines that end with a pragma, ruff says nothing
