"""A port that a test closes belongs to whoever asks next: `support.ports` has one where nobody ever
listens.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2]

NAMING = {"bind", "getsockname", "int", "str"}
"""What is called to learn a port. Whoever calls something else uses it while it is open."""


def find_closed_ports(source: str) -> list[int]:
    """The lines that open a socket only to learn its port, or close it right after."""
    if "getsockname" not in source:
        return []
    return [node.lineno for node in ast.walk(ast.parse(source)) if _is_probe(node)]


def _is_probe(node: ast.AST) -> bool:
    match node:
        case ast.With(items, body):
            opened = {part for each in items for part in ast.unparse(each).split("(")}
            opens = bool(opened & {"socket.create_server", "socket.socket"})
            return (
                opens
                and "getsockname" in ast.unparse(body[-1])
                and all(_called(each) <= NAMING for each in body)
            )
    return False


def _called(node: ast.stmt) -> set[str]:
    """The last names of what it calls."""
    return {
        ast.unparse(each.func).rpartition(".")[2]
        for each in ast.walk(node)
        if isinstance(each, ast.Call)
    }


@pytest.mark.parametrize(
    ("source", "is_found"),
    [
        ("with socket.create_server(HERE) as taken:\n    port = taken.getsockname()[1]", True),
        (
            "with closing(socket.create_server(HERE)) as gone:\n    port = gone.getsockname()[1]",
            True,
        ),
        (
            (
                "with socket.socket() as probe:\n    probe.bind(HERE)\n    return "
                "probe.getsockname()[1]"
            ),
            True,
        ),
        ("with socket.create_server(HERE) as silent:\n    ask(silent.getsockname()[1])", False),
        (
            (
                "with socket.create_server(HERE) as taken:\n    done = "
                "run(str(taken.getsockname()[1]))"
            ),
            False,
        ),
        (
            "with socket.socket() as own:\n    name = own.getsockname()\n    own.connect(name)",
            False,
        ),
    ],
)
def test_a_port_that_is_closed_before_it_is_used_is_found(source: str, *, is_found: bool) -> None:
    assert bool(find_closed_ports(source)) is is_found


def test_no_test_relies_on_a_port_that_it_has_closed() -> None:
    found = {
        file.relative_to(TESTS): find_closed_ports(file.read_text()) for file in TESTS.rglob("*.py")
    }
    assert {file: lines for file, lines in found.items() if lines} == {}
