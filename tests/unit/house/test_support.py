"""Helpers of several folders stand in support, which stays small; a folder imports no helper of another one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
FILES_AT_MOST = 30
LINES_AT_MOST = 335
LONGER = {
    "faulty.py": 455,  # a server and its faults, each used by name
    "places.py": 435,  # ten backends, one class each
}
"""Modules of support that are longer, and how long they are: none grows."""


def imported(file: Path) -> Iterator[str]:
    """The modules of the tests that a file imports."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        yield from (name for name in names if (TESTS / f"{name.replace('.', '/')}.py").exists())


def test_support_stays_small() -> None:
    lengths = {file.name: len(file.read_text(encoding="utf-8").splitlines()) for file in TESTS.glob("support/*.py")}
    assert len(lengths) <= FILES_AT_MOST
    assert {name: found for name, found in lengths.items() if found > LONGER.get(name, LINES_AT_MOST)} == {}


def test_a_folder_imports_only_its_own_helpers_and_support() -> None:
    """But long runs and kills: they are other forms of other folders' tests, and drive their helpers."""
    for file in TESTS.rglob("*/*.py"):
        path = file.relative_to(TESTS)
        driving = path.is_relative_to("endurance") or path.is_relative_to("cli/kills")
        modules = [] if driving else [Path(*name.split(".")) for name in imported(file)]
        assert [str(each) for each in modules if not is_near(each, path)] == [], path


def is_near(module: Path, file: Path) -> bool:
    """Whether a module stands in support, in a file's own folder of two names, or in a folder above the file."""
    return module.parts[0] == "support" or module.parent in file.parents or module.parts[:2] == file.parts[:2]
