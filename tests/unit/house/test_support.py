"""Helpers of several folders stand in support; a folder imports no helper of another one."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
_PARTS = ("body", "orelse", "finalbody", "handlers", "cases")


@cache
def imported(file: Path) -> Sequence[str]:
    """The modules of the tests that a file imports."""
    names: list[str] = []
    waiting: list[ast.AST] = [ast.parse(file.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        for part in _PARTS:  # no expression has an import
            waiting += getattr(node, part, ())
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return list(filter(is_of_tests, names))


@cache
def is_of_tests(module: str) -> bool:
    """Whether the tests have a module of that name."""
    return (TESTS / f"{module.replace('.', '/')}.py").exists()


def test_a_folder_imports_only_its_own_helpers_and_support() -> None:
    """But long runs and kills: they are other forms of other folders' tests, and drive their
    helpers and fakes.
    """
    far = []
    for file in TESTS.rglob("*/*.py"):
        path = file.relative_to(TESTS)
        driving = any(path.is_relative_to(each) for each in ("endurance", "cli/kills"))
        modules = [] if driving else [Path(*name.split(".")) for name in imported(file)]
        far += [
            f"tests/{path} imports tests/{each}.py" for each in modules if not is_near(each, path)
        ]
    remedy = (
        "move what several folders use to tests/support, or the test to the folder of its helper"
    )
    assert far == [], "\n".join([*far, remedy])


def test_a_test_file_imports_no_other_test_file() -> None:
    """What two of them need stands in a module of their folder, or in tests/support."""
    found = [
        f"tests/{file.relative_to(TESTS)} imports {name}"
        for file in TESTS.rglob("*/*.py")
        for name in imported(file)
        if any(part.startswith("test_") for part in name.split("."))
    ]
    assert found == []


def is_near(module: Path, file: Path) -> bool:
    """Whether a module stands in support, in a file's own folder of two names, or in a folder above
    the file.

    A product's fake stands beside the product's tests; the contracts and the benchmarks may use it,
    too.
    """
    if (file.match("contracts/test_*.py") or file.match("benchmarks/*.py")) and module.match(
        "plugins/*/fake_*"
    ):
        return True
    return (
        module.parts[0] == "support"
        or module.parent in file.parents
        or module.parts[:2] == file.parts[:2]
    )
