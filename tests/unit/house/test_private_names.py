"""Private names of dependencies and of the standard library are used where this table says why, and
nowhere else.

Found by reading the source of core and plugins: imports of `_x`, attributes `_x` of an imported
module or of anything that none of our files defines, such names in strings (`getattr`,
`import_module`), and writes to `sys.modules`.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping, Sequence, Set
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[3]
SOURCES: Final = [
    file for folder in ("core", "plugins") for file in sorted((ROOT / folder).rglob("*.py"))
]
OURS: Final = {"sealpipe", "sealpipe_plugins", "sealpipe_rehearsal", "sealpipe_service"}

ALLOWED: Final[Mapping[tuple[str, str], str]] = {
    (
        "core/sealpipe/hardening.py",
        "_ctypes",
    ): "ctypes itself would cost every command ten times the import",
    (
        "core/sealpipe/__main__.py",
        "httpx._main",
    ): "httpx imports its command line, with rich, and no setting stops it",
    (
        "core/sealpipe/__main__.py",
        "sys.modules",
    ): "blocks trio and httpx._main, which are imported if they are there",
    (
        "core/sealpipe/registry/entry_points.py",
        "_frozen_importlib",
    ): "compared as text only: Python's own finders name it",
    (
        "core/sealpipe/signals.py",
        "atexit._run_exitfuncs",
    ): "the only way to run clean-ups without waiting for threads",
    (
        "core/sealpipe/run/terminal.py",
        "os._exit",
    ): "public all the same: what a forked process has to end with",
    (
        "core/sealpipe/signals.py",
        "os._exit",
    ): "public all the same: documented in the library reference",
}
"""The file, the name, and why there is no public way."""

DOCUMENTED: Final = {"_asdict", "_field_defaults", "_fields", "_make", "_replace"}
"""Public names of named tuples: the underscore only keeps them apart from the fields."""

READING: Final = {"copy", "get", "items", "keys", "values"}
"""Methods of `sys.modules` that change nothing."""

_DOTTED: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", re.ASCII)


def _is_private(name: str) -> bool:
    return (
        name.startswith("_") and not (name.startswith("__") and name.endswith("__")) and name != "_"
    )


def _find_private_part(dotted: str) -> bool:
    return dotted.partition(".")[0] not in OURS and any(
        _is_private(part) for part in dotted.split(".")
    )


@cache
def _nodes(source: str) -> Sequence[ast.AST]:
    return list(ast.walk(ast.parse(source)))


@cache
def _collect_own_names(source: str) -> Set[str]:
    """Return every private name that a file of ours defines, at any level."""
    found = set[str]()
    for node in _nodes(source):
        match node:
            case ast.ClassDef(name=name):
                found |= {name, *(f"_{name.lstrip('_')}{each}" for each in _collect_mangled(node))}
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                found.add(name)
    return found


def _collect_mangled(node: ast.ClassDef) -> set[str]:
    return {
        each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute) and each.attr.startswith("__")
    }


def _collect_imports(source: str) -> dict[str, str]:
    """Return the dotted names behind a file's imported names; only of modules that are not ours."""
    found: dict[str, str] = {}
    for node in _nodes(source):
        if isinstance(node, ast.Import):
            for each in node.names:
                name = each.name if each.asname else each.name.partition(".")[0]
                found[each.asname or name] = name
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    return {name: dotted for name, dotted in found.items() if dotted.partition(".")[0] not in OURS}


def _resolve(node: ast.expr, imported: Mapping[str, str]) -> str | None:
    """Return the dotted name of an attribute of something imported; None for anything else."""
    if isinstance(node, ast.Name):
        return imported.get(node.id)
    if isinstance(node, ast.Attribute):
        base = _resolve(node.value, imported)
        return None if base is None else f"{base}.{node.attr}"
    return None


def find_private_names(source: str, own_names: Set[str]) -> set[str]:
    """Return the private names of others that a file uses, and `sys.modules` if it may write
    there.
    """
    imported, own = _collect_imports(source), own_names | _collect_own_names(source)
    found: set[str] = set()
    for node in _nodes(source):
        match node:
            case ast.Import(names=names):
                found |= {each.name for each in names if _find_private_part(each.name)}
            case ast.ImportFrom(module=str(module), names=names, level=0):
                dotted = {module: module} | {f"{module}.{each.name}": each.name for each in names}
                found |= {
                    module if _find_private_part(module) else name
                    for name in dotted
                    if _find_private_part(name)
                }
                found |= {"sys.modules"} & dotted.keys()
            case ast.Attribute(attr=attr):
                name = _resolve(node, imported)
                if name == "sys.modules" and not _only_reads(node, source):
                    found.add(name)
                elif (
                    _is_private(attr)
                    and attr not in DOCUMENTED
                    and (name is not None or attr not in own)
                ):
                    found.add(name or f"?.{attr}")
            case ast.Constant(value=str(text)) if _DOTTED.fullmatch(text) and _find_private_part(
                text
            ):
                found.add(text)
            case ast.Constant(value=str(text)) if text in sys.stdlib_module_names and _is_private(
                text
            ):
                found.add(text)
            case ast.Call(
                func=ast.Name(id="getattr" | "setattr" | "delattr" | "hasattr"),
                args=[of, name_node, *_],
            ):
                match name_node:
                    case ast.Constant(value=str(text)) if (
                        _is_private(text) and text not in DOCUMENTED
                    ):
                        base = _resolve(of, imported)
                        if base is not None or text not in own:
                            found.add(f"{base or '?'}.{text}")
    return found


def _only_reads(node: ast.Attribute, source: str) -> bool:
    parent = next(each for each in _nodes(source) if node in ast.iter_child_nodes(each))
    match parent:
        case ast.Compare():
            return True
        case ast.Subscript(ctx=ast.Load(), value=value):
            return value is node
        case ast.Attribute(attr=attr):
            return attr in READING
        case _:
            return False


@pytest.fixture(scope="module")
def own_names() -> set[str]:
    return {
        name for file in SOURCES for name in _collect_own_names(file.read_text(encoding="utf-8"))
    }


def test_private_names_of_others_are_in_the_table(own_names: set[str]) -> None:
    used = {
        (str(file.relative_to(ROOT)), name)
        for file in SOURCES
        for name in find_private_names(file.read_text(encoding="utf-8"), own_names)
    }
    assert used == ALLOWED.keys()


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import httpx._main", "httpx._main"),
        ("import httpx._main as line", "httpx._main"),
        ("from httpx._config import Limits", "httpx._config"),
        ("from httpx import _main", "httpx._main"),
        ("from _ctypes import dlopen", "_ctypes"),
        ("import httpx\nhttpx._main.main()", "httpx._main"),
        ("import httpcore as core\nclass A:\n  def f(self): return core._sync.x", "httpcore._sync"),
        ("def f():\n  import atexit\n  atexit._clear()", "atexit._clear"),
        ("from httpx import Client\nClient._send", "httpx.Client._send"),
        (
            "def f(client): return client._transport_for_url_of_httpx",
            "?._transport_for_url_of_httpx",
        ),
        ("class A(B):\n  def f(self): self._inherited_of_b()", "?._inherited_of_b"),
        ("import os\ndef _exit(): ...\nos._exit(1)", "os._exit"),
        ("import importlib\nimportlib.import_module('httpx._main')", "httpx._main"),
        ("__import__('_ctypes')", "_ctypes"),
        ("import httpx\ngetattr(httpx, '_main')", "httpx._main"),
        ("import sys\nsys.modules['trio'] = None", "sys.modules"),
        ("import sys\nsys.modules.setdefault('trio', None)", "sys.modules"),
        ("import sys\ndel sys.modules['trio']", "sys.modules"),
        ("import sys as system\nsystem.modules.update(x)", "sys.modules"),
        ("import sys\nmodules = sys.modules", "sys.modules"),
        ("from sys import modules", "sys.modules"),
    ],
)
def test_a_planted_one_is_found(own_names: set[str], source: str, found: str) -> None:
    assert found in find_private_names(source, own_names)


@pytest.mark.parametrize(
    "source",
    [
        "from __future__ import annotations",
        # ruff and mypy watch our own
        "from sealpipe.state.files import _link\nimport sealpipe_plugins._own",
        "class A:\n  def __init__(self): self._mine = 1\n  def f(self, other): return other._mine",
        "def f(row): return row._replace(x=1)._asdict()",
        "import sys\n'x' in sys.modules and sys.modules['x'] and sys.modules.get('x')",
        "x = '_not_a_module'; y = 'a sentence. _so what'",
        "import os\nos.environ.__contains__",
    ],
)
def test_what_is_ours_or_public_is_not(own_names: set[str], source: str) -> None:
    assert find_private_names(source, own_names) == set()
