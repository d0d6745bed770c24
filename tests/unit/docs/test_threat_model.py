"""The threat model names existing tests, and the README and the security page link to it."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/explanation/threat-model.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
SCENARIO = re.compile(r"`(tests/cli/scenarios/[\w-]+\.txt)`")


@cache
def names_in(file: Path) -> set[str]:
    """The names of a file's tests, those in classes too."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def rows() -> list[list[str]]:
    """Return the rows of the tables of attacks: attack, defence, tests."""
    part = PAGE.read_text(encoding="utf-8").partition("## Attacks")[2].partition("\n## ")[0]
    lines = [
        line
        for line in part.splitlines()
        if line.startswith("| ") and not line.startswith(("| attack", "| ---"))
    ]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


@pytest.mark.parametrize(
    ("file", "name"), sorted(set(NAMED.findall(PAGE.read_text(encoding="utf-8"))))
)
def test_each_test_that_is_named_is_there(file: str, name: str) -> None:
    assert name.startswith("test_")
    assert name in names_in(ROOT / file)


def test_each_scenario_that_is_named_is_there() -> None:
    named = SCENARIO.findall(PAGE.read_text(encoding="utf-8"))
    assert named
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_every_attack_has_what_holds_it_and_a_test() -> None:
    assert len(rows()) >= 45
    for row in rows():
        assert len(row) == 3, row
        assert NAMED.search(row[2]), row[0]
        assert SCENARIO.sub("", NAMED.sub("", row[2])).strip() == "", row[2]


def test_each_attack_is_there_once() -> None:
    attacks = [row[0] for row in rows()]
    assert len(set(attacks)) == len(attacks)


def test_github_and_readers_find_both_pages() -> None:
    assert (ROOT / "docs/SECURITY.md").exists(), "GitHub looks here, too"
    for page in ("README.md", "docs/SECURITY.md"):
        assert "threat-model.md" in (ROOT / page).read_text(encoding="utf-8"), page
    assert "docs/SECURITY.md" in (ROOT / "README.md").read_text(encoding="utf-8")
    for part in (
        "page that the service serves",
        "key of a request",
        "machine",
        "pipeline",
        "assistant",
        "Plugins",
        "packages",
    ):
        assert part in PAGE.read_text(encoding="utf-8"), part
