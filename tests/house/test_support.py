"""Helpers of several folders stand in support, which stays small; a folder imports no helper of another one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
FILES_AT_MOST = 33
LINES_AT_MOST = 335
LONGER = {
    "faulty.py": 455,  # a server and its faults, each used by name
    "places.py": 435,  # ten backends, one class each
}
"""Modules of support that are longer, and how long they are: none grows."""
ACROSS = {
    ("browser/test_vectors_in_the_page.py", "wire.reader"): "the vectors are the wire's own, and so is their form",
}
"""What a folder imports of another one, with the reason. It only shrinks."""


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
    """But endurance runs: they are the long forms of other folders' tests, and drive their helpers."""
    across = set()
    for file in TESTS.rglob("*/*.py"):
        folder = file.relative_to(TESTS).parts[0]
        if folder != "endurance":
            known = {"support", folder} if folder != "support" else {"support"}
            across |= {
                (str(file.relative_to(TESTS)), name) for name in imported(file) if name.partition(".")[0] not in known
            }
    assert across == set(ACROSS)
