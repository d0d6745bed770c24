"""What the specification says of the service (specification.toml), its text in the same pieces, and
who names what.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
_TABLE = tomllib.loads((Path(__file__).parent / "specification.toml").read_text(encoding="utf-8"))

ROWS: Mapping[str, Mapping[str, str]] = _TABLE["rows"]
"""By section of the specification: our name of a row or sentence, and the text that finds it
there.
"""
ELSEWHERE: Mapping[str, Mapping[str, str]] = _TABLE["elsewhere"]
"""By section: the text of what no test of the service can show, and why not, or which other test
does.
"""
GAPS: Mapping[str, str] = _TABLE["gaps"]
GAPS_ELSEWHERE: Mapping[str, str] = _TABLE["gaps-elsewhere"]

NAMES: Mapping[str, str] = {
    name: text for rows in (*ROWS.values(), GAPS) for name, text in rows.items()
}
"""Every name that a test can give, and the row's text."""

_SENTENCE_ENDS = re.compile(r"(?<=[.;])\s+(?=[A-Z`\d(])")


def pieces(document: str) -> dict[str, list[str]]:
    """A Markdown document as its sections' rows and sentences.

    Rows lose their outer bars, the heads of tables go.
    """
    found: dict[str, list[str]] = {}
    section: list[str] = []
    lines = document.splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith("#"):
            section = found.setdefault(line.lstrip("# "), [])
        elif line.startswith("|"):
            if not _rules(line) and not _rules(following):
                section.append(line.strip("| ") + " |")
        elif text := re.sub(r"^(\d+\.|-) ", "", line.strip()):
            section += _SENTENCE_ENDS.split(text)
    return found


def _rules(line: str) -> bool:
    return bool(line) and not line.strip("|-: ")


def named() -> dict[str, set[str]]:
    """Which tests name which row: by reading every `mark.spec(...)` below tests/."""
    found: dict[str, set[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "mark.spec" in text:
            for test, names in _marks(ast.parse(text)):
                for name in names:
                    found.setdefault(name, set()).add(f"{path.relative_to(TESTS)}::{test}")
    return found


def _marks(module: ast.Module) -> Iterator[tuple[str, list[str]]]:
    for function in ast.walk(module):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in function.decorator_list:
                if (
                    isinstance(decorator, ast.Call)
                    and ast.unparse(decorator.func) == "pytest.mark.spec"
                ):
                    yield function.name, [ast.literal_eval(argument) for argument in decorator.args]
