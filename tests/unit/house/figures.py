"""The figures of the house: how it is tied together, and what a reader has to hold.

    python tests/unit/house/figures.py         a table: each figure, its limit and its target
    python tests/unit/house/figures.py NAME    every place that the figure counts

They are read from the source. An import counts wherever it stands: in a function, or for types
only.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import grimp

ROOT: Final = Path(__file__).resolve().parents[3]
PACKAGES: Final = ("sealpipe", "sealpipe_plugins", "sealpipe_rehearsal", "sealpipe_service")
SHORT_INIT: Final = 40
ITERATING: Final = ("Iterator", "Iterable", "AsyncIterator")
"""What a function returns that yields items (pages, rows, the body of a `with`) and is sent
nothing.
"""

Places = Sequence[str]
Lines = Iterator[int]
Function = ast.FunctionDef | ast.AsyncFunctionDef


def find_circles(imports: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Return the strongly connected components of more than one module, as Tarjan finds them."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    unfinished: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        unfinished.append(module)
        for other in imports.get(module, ()):
            if other not in order:
                visit(other)
            if other in unfinished:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == order[module]:
            begin = unfinished.index(module)
            found.append(sorted(unfinished[begin:]))
            del unfinished[begin:]

    for module in sorted(imports):
        if module not in order:
            visit(module)
    return [circle for circle in found if len(circle) > 1]


def find_texts(pattern: str) -> Callable[[str], Lines]:
    """Return what finds a pattern: the number of its line, as often as it stands there."""
    findall = re.compile(pattern).findall

    def find(source: str) -> Lines:
        for number, line in enumerate(source.splitlines(), 1):
            if found := findall(line):
                yield from [number] * len(found)

    return find


def find_generators(source: str) -> Lines:
    """Find functions with steps: they yield, and say of themselves something else than that they
    iterate.
    """
    for function in _functions(source):
        yields = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in _own_nodes(function))
        if yields and not (
            function.returns and ast.unparse(function.returns).startswith(ITERATING)
        ):
            yield function.lineno


def find_inner_imports(source: str) -> Lines:
    """Find imports inside functions."""
    for function in _functions(source):
        yield from (
            node.lineno
            for node in _own_nodes(function)
            if isinstance(node, ast.Import | ast.ImportFrom)
        )


def find_type_only_blocks(source: str) -> Lines:
    """Find `if TYPE_CHECKING`; `if not TYPE_CHECKING`, which hides a name from mypy, is something
    else.
    """
    for node in _nodes(source):
        if isinstance(node, ast.If) and ast.unparse(node.test) in (
            "TYPE_CHECKING",
            "typing.TYPE_CHECKING",
        ):
            yield node.lineno


def find_edited_errors(source: str) -> Lines:
    """Find texts of errors that are changed after the errors were made."""
    for node in _nodes(source):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for each in (part for target in targets for part in ast.walk(target)):
                if (
                    isinstance(each, ast.Attribute)
                    and isinstance(each.ctx, ast.Store)
                    and each.attr in ("message", "remedy")
                    and ast.unparse(each.value) != "self"
                ):
                    yield each.lineno


@cache
def _nodes(source: str) -> Sequence[ast.AST]:
    return list(ast.walk(ast.parse(source)))


@cache
def _functions(source: str) -> Sequence[Function]:
    return [node for node in _nodes(source) if isinstance(node, Function)]


@cache
def _own_nodes(function: Function) -> Sequence[ast.AST]:
    """Return what stands in the body of a function, without the functions and classes in it."""
    found, waiting = list[ast.AST](), list[ast.AST](function.body)
    while waiting:
        node = waiting.pop()
        found.append(node)
        if not isinstance(node, Function | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)
    return found


@cache
def _circles() -> Sequence[Sequence[str]]:
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=False, cache_dir=None)
    return find_circles(
        {each: sorted(graph.find_modules_directly_imported_by(each)) for each in graph.modules}
    )


def _places(find: Callable[[str], Lines], *folders: str) -> Callable[[], Places]:
    @cache
    def find_all() -> Places:
        files = [file for folder in folders for file in sorted((ROOT / folder).rglob("*.py"))]
        return [
            f"{name}:{line}"
            for file in files
            for name in [file.relative_to(ROOT)]
            for line in find(file.read_text(encoding="utf-8"))
        ]

    return find_all


def _long_inits() -> Places:
    files = sorted((ROOT / "core").rglob("__init__.py"))
    lines = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    return [
        f"{file.relative_to(ROOT)}: {number} lines"
        for file, number in lines.items()
        if number > SHORT_INIT
    ]


@dataclass(frozen=True)
class Figure:
    """What finds the places that count; how many are allowed, and how many are meant; how to have
    fewer.
    """

    find: Callable[[], Places]
    at_most: int | None = None
    target: int | None = None
    remedy: str = ""


_BELOW: Final = "move what both need to a module below them"
_TOP: Final = "import at the top of the module"
_PRODUCT: Final = ("core", "plugins")
FIGURES: Final[Mapping[str, Figure]] = {
    "import circles": Figure(lambda: [" ".join(circle) for circle in _circles()], 0, 0, _BELOW),
    "modules in circles": Figure(
        lambda: [module for circle in _circles() for module in circle], 0, 0, _BELOW
    ),
    "yield Do(": Figure(_places(find_texts(r"yield Do\("), *_PRODUCT), 0, 0, "call the function"),
    "Flow[": Figure(
        _places(find_texts(r"Flow\["), *_PRODUCT), 0, 0, "write a function that returns its result"
    ),
    "generators": Figure(
        _places(find_generators, "core"), 0, 0, "write a function, or say Iterator if it is one"
    ),
    "imports in functions": Figure(_places(find_inner_imports, "core"), 142, 150, _TOP),
    "TYPE_CHECKING blocks": Figure(_places(find_type_only_blocks, *_PRODUCT), 45, None, _TOP),
    "edited error texts": Figure(
        _places(find_edited_errors, *_PRODUCT),
        0,
        0,
        "make the error where all is known, or raise its copy_with other words",
    ),
    "long __init__.py": Figure(_long_inits, 4, 4, "move its code to a module that has a name"),
    "lines over 100 columns": Figure(
        _places(find_texts("^.{101,}"), *_PRODUCT, "tests"), 0, 0, "wrap the line"
    ),
    "lines of core": Figure(_places(find_texts("^"), "core")),
    "lines of plugins": Figure(_places(find_texts("^"), "plugins")),
    "lines of tests": Figure(_places(find_texts("^"), "tests")),
}
"""Whoever makes a figure better lowers what is allowed. How many lines there are is only shown."""


def main(arguments: Sequence[str]) -> None:
    """Print the table, or the places of one figure."""
    if arguments:
        print(*FIGURES[" ".join(arguments)].find(), sep="\n")
        return
    rows = [
        (name, len(figure.find()), figure.at_most, figure.target)
        for name, figure in FIGURES.items()
    ]
    for row in [("", "now", "at most", "target"), *rows]:
        cells = ["" if cell is None else str(cell) for cell in row]
        print(f"{cells[0]:24}{cells[1]:>8}{cells[2]:>9}{cells[3]:>8}".rstrip())


if __name__ == "__main__":
    main(sys.argv[1:])
