"""docs/how-to/ci agrees with the files that it shows, with the actions, and with the tests that are
named.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
import yaml

from e2e.workflows.act import OURS
from support.parts import ROOT, load_module

CI = ROOT / "docs/how-to/ci"
COPIES = sorted((CI / "workflows").glob("*.yml"))
FACTS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in (ROOT / "docs/contributing/runner-facts.md")
    .read_text(encoding="utf-8")
    .splitlines()
    if line.startswith("| ") and not line.startswith(("| fact |", "| --- |"))
]


@cache
def named_in(file: Path) -> frozenset[str]:
    """The names of a file's tests, those of its classes, too."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def test_the_page_shows_every_file_as_it_is() -> None:
    module = load_module("workflow_pages", Path(__file__).with_name("pages.py"))
    text = module.PAGE.read_text(encoding="utf-8")
    assert text == module.filled(text), "run python tests/e2e/workflows/pages.py"
    files = {
        str(file.relative_to(CI))
        for folder in ("workflows", "vault")
        for file in (CI / folder).iterdir()
    }
    assert module.shown(text) == files


@pytest.mark.parametrize("file", COPIES, ids=lambda file: file.name)
def test_a_workflow_to_copy_uses_inputs_and_outputs_that_there_are(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    steps = [step for job in yaml.safe_load(text)["jobs"].values() for step in job.get("steps", [])]
    for step in steps:
        ours = OURS.fullmatch(step.get("uses", ""))
        if ours is None:
            continue
        manifest = yaml.safe_load(
            (ROOT / "actions" / ours[1] / "action.yml").read_text(encoding="utf-8")
        )
        assert set(step["with"]) <= set(manifest["inputs"])
        assert set(re.findall(rf"steps\.{step.get('id')}\.outputs\.([\w-]+)", text)) <= set(
            manifest["outputs"]
        )


def test_the_call_of_the_reusable_workflow_fits_it() -> None:
    text = (CI / "workflows" / "call-share.yml").read_text(encoding="utf-8")
    job = yaml.safe_load(text)["jobs"]["share"]
    called = yaml.safe_load((ROOT / ".github/workflows/share.yml").read_text(encoding="utf-8"))[
        True
    ]["workflow_call"]
    needed = {name for name, each in called["inputs"].items() if each.get("required")}
    assert needed <= set(job["with"]) <= set(called["inputs"])
    assert set(job["secrets"]) <= set(called["secrets"])
    assert set(re.findall(r"needs\.share\.outputs\.([\w-]+)", text)) <= set(called["outputs"])


def test_what_the_reusable_workflow_hands_on_is_nothing_that_is_masked() -> None:
    called = yaml.safe_load((ROOT / ".github/workflows/share.yml").read_text(encoding="utf-8"))[
        True
    ]["workflow_call"]
    assert set(called["outputs"]) == {"short-code", "expires-at", "sealed-link", "outcome"}


def test_there_are_facts() -> None:
    assert len(FACTS) >= 45
    assert {len(row) for row in FACTS} == {3}


@pytest.mark.parametrize("row", FACTS, ids=lambda row: row[0][:40])
def test_every_fact_is_held_by_tests_that_there_are(row: list[str]) -> None:
    held = re.findall(r"`([\w/.]+\.py)::(\w+)`", row[2])
    scenarios = re.findall(r"`(tests/cli/scenarios/[\w.-]+\.txt)`", row[2])
    assert len(held) + len(scenarios) == row[2].count("`") // 2 > 0
    assert all((ROOT / scenario).is_file() for scenario in scenarios)
    for file, test in held:
        assert test in named_in(ROOT / file), f"{file}::{test}"
