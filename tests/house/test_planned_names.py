"""Names of core that a newcomer stumbles over, and what each is to be called: renames.tsv is the list of what is left.

A row is `module, place, old, new`: the place is a class or a function, empty for the module itself. A row goes with its
rename, so that the list is never longer than the work.
"""

from __future__ import annotations

import ast
import csv
from collections.abc import Iterator
from functools import cache
from pathlib import Path

HOUSE = Path(__file__).parent
CORE = HOUSE.parents[1] / "core" / "sealpipe"
AT_MOST = 1_396
"""Rows. It only falls: a new name is right at once."""


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse((CORE / module).read_text(encoding="utf-8"))


def _names(node: ast.AST) -> Iterator[str]:
    """What is defined in a place: classes, functions, parameters, variables and attributes of `self`."""
    for each in ast.walk(node):
        match each:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
                yield name


def is_left(module: str, place: str, old: str) -> bool:
    """Whether the old name is still defined there."""
    places = [
        each
        for each in ast.walk(_tree(module))
        if isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and each.name == place
    ]
    return any(old in _names(each) for each in (places if place else [_tree(module)]))


def test_a_row_goes_with_its_rename_and_none_is_added() -> None:
    with (HOUSE / "renames.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t"))
    assert [row for row in rows if not is_left(*row[:3])] == [], "remove what was renamed"
    assert len(rows) <= AT_MOST
