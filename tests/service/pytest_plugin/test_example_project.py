"""The example project of the docs: its tests pass, and fail where its code is wrong."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from service.pytest_plugin.conftest import Project
from support.parts import ROOT
from support.terminal import Terminal

EXAMPLE = ROOT / "docs/how-to/example-project"
DOCS = (ROOT / "docs/how-to/test-your-code.md").read_text(encoding="utf-8")
HANDOVER = [
    block for block in re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL) if "hand_over" in block
]
"""The blocks of the page that show it."""

# What a careless edit could do to the example, and the test of the example's that catches it.
BREAKS = {
    "it may be opened again and again": ("views=1,", "views=None,", {"test_the_link_opens_once"}),
    "it lasts for a month": (
        "timedelta(days=1)",
        "timedelta(days=30)",
        {"test_after_a_day_the_link_is_dead"},
    ),
    "the password is in the title": (
        'title=f"Staging database for {user}"',
        'title=f"Staging database, {password}"',
        {"test_the_service_never_sees_the_password"},
    ),
    "the program shows the Secret, not the link": (
        ".reveal())\n\n\nif",
        ")\n\n\nif",
        {"test_the_program_prints_the_link"},
    ),
}


@pytest.fixture
def copy(bare: Terminal) -> Path:
    """The example as somebody copied it."""
    return Path(
        shutil.copytree(EXAMPLE, bare.here / "copy", ignore=shutil.ignore_patterns("__pycache__"))
    )


def test_its_tests_pass_also_where_every_warning_is_an_error(copy: Path, project: Project) -> None:
    ran = project("-W", "error", folder=copy)
    assert ran.code == 0, ran.out
    assert ran.counts == {
        "passed": (copy / "tests/test_handover.py").read_text().count("\ndef test_")
    }


@pytest.mark.parametrize("how", BREAKS)
def test_they_fail_where_its_code_is_wrong(copy: Path, project: Project, how: str) -> None:
    right, wrong, caught = BREAKS[how]
    code = copy / "handover.py"
    before = code.read_text()
    assert before.count(right) == 1
    code.write_text(before.replace(right, wrong))
    assert project(folder=copy).failed == caught


def test_the_page_on_testing_shows_the_example_as_it_is() -> None:
    code = (EXAMPLE / "handover.py").read_text() + (EXAMPLE / "tests/test_handover.py").read_text()
    parts = "\n\n\n".join(HANDOVER).split("\n\n\n")
    functions = [part for part in parts if part.startswith("def ")]
    assert len(functions) == 3
    assert [part for part in functions if part.strip() not in code] == []
    lines = {line for part in parts if part not in functions for line in part.splitlines()}
    assert lines - {*code.splitlines()} == set()


def test_all_tests_on_the_page_pass_as_they_are_pasted(bare: Terminal, project: Project) -> None:
    for name, block in zip(("handover.py", "test_handover.py"), HANDOVER, strict=True):
        bare.file(name, block)
    blocks = re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL)
    tests = [block for block in blocks if "def test_" in block and "handover" not in block]
    for number, block in enumerate(tests):
        bare.file(f"test_page_{number}.py", block)
    ran = project("-W", "error")
    others = sum(block.count("def test_") for block in tests)
    assert (ran.code, ran.counts["passed"]) == (0, 2 + others), ran.out
